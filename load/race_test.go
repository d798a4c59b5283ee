//go:build race

package load_test

// raceEnabled: the race detector makes the engine ten times as slow. Tests then
// run smaller, as they say; scripts/test runs them at full size without it.
const raceEnabled = true

// messages is how many most of the known answers are about.
const messages = 6_000
