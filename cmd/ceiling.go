package cmd

import (
	"os"
	"path/filepath"

	"github.com/mqttload/mqttload/result"
)

// calibrationPath is the file of the last calibration, below the user's cache
// directory; "" if there is no such directory.
func calibrationPath() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mqttload", "calibration.json")
}

// saveCalibration saves r, unless it covers only part of the cases and there is
// one for this machine already. Failing to save is not a fault: the result is
// printed anyway.
func (t *terminal) saveCalibration(r *result.Report, part bool) {
	path := calibrationPath()
	if path == "" {
		t.warn("note: the calibration is not saved: there is no cache directory")
		return
	}
	if old, err := result.Read(path); part && err == nil && result.CheckCalibration(old, r) == nil {
		t.warn("note: the saved calibration stays, because this one covers only some of its cases")
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = result.Write(path, r)
	}
	if err != nil {
		t.warn("warning: the calibration could not be saved, so run will show no ceilings: %v", err)
	}
}
