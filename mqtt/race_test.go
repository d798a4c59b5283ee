//go:build race

package mqtt

// raceEnabled: under the race detector floods are smaller; scripts/test runs
// them at full size without it.
const raceEnabled = true
