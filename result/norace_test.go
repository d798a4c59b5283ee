//go:build !race

package result

const raceDetector = false
