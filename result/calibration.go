package result

// Calibration is what `calibrate` has found beside its cases: whether the tool
// gives known answers.
type Calibration struct {
	Rounds int `json:"rounds"`
	// LoadAverage is that of the system over the minute before, nil where it is
	// not known: on a busy machine ceilings come out too low.
	LoadAverage *float64 `json:"load_average"`
	Answers     []Answer `json:"known_answers"`
}

// Answer is one known answer: what a measurement of something known has to
// say, and what it said.
type Answer struct {
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Passed   bool   `json:"passed"`
}

// Wrong are the known answers that were not given.
func (c *Calibration) Wrong() (list []Answer) {
	for _, a := range c.Answers {
		if !a.Passed {
			list = append(list, a)
		}
	}
	return list
}
