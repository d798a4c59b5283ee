package bench

import (
	"errors"
	"io/fs"

	"github.com/mqttload/mqttload/result"
)

// addCeilings puts into r how near its rows come to what the tool reaches here,
// where the calibration at path is of this machine and version. The error says
// why it cannot be used; that there is none is not an error.
func addCeilings(path string, r *result.Report) error {
	if path == "" {
		return nil
	}
	cal, err := result.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = result.CheckCalibration(cal, r)
	}
	if err != nil {
		return err
	}
	result.AddCeilings(cal, r)
	return nil
}
