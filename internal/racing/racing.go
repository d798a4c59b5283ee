// Package racing tells tests whether the race detector is on, so that tests of
// speed can be skipped and tests of volume can be smaller. scripts/test runs
// them at full size without the detector.
package racing

// Enabled reports whether the race detector is on.
const Enabled = Slowdown > 1
