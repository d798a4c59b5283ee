package result

// Calibration is what `calibrate` found besides its cases: whether the tool measures
// known quantities correctly.
type Calibration struct {
	Rounds int `json:"rounds"`
	// LoadAverage is that of the system over the minute before, nil if unknown: on
	// a busy machine ceilings come out too low.
	LoadAverage *float64 `json:"load_average"`
	Answers     []Answer `json:"known_answers"`
}

// Answer is the check of one known quantity: the result that measuring it must give,
// and the one it gave.
type Answer struct {
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Passed   bool   `json:"passed"`
}

// Wrong returns the known answers that did not pass.
func (c *Calibration) Wrong() (list []Answer) {
	for _, a := range c.Answers {
		if !a.Passed {
			list = append(list, a)
		}
	}
	return list
}
