//go:build race

package calibrate_test

// raceEnabled: the race detector makes a calibration twenty times as long.
const raceEnabled = true
