//go:build !race

package load_test

const raceEnabled = false

// messages is how many most of the known answers are about.
const messages = 60_000
