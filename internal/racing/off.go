//go:build !race

package racing

// Slowdown is about how many times longer code takes because of the race
// detector: 10 with it, 1 without.
const Slowdown = 1
