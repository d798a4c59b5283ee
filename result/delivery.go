package result

import "fmt"

// ledgerError says which identity of a delivery account does not hold.
type ledgerError struct {
	Identity string // "expected = delivered + lost"
	Left     int64
	Right    int64
}

func (e *ledgerError) Error() string {
	return fmt.Sprintf("delivery account does not balance: %s, but %d is not %d", e.Identity, e.Left, e.Right)
}

// Check returns an error that names the first identity that d breaks: scheduled =
// sent + unsent, expected = delivered + lost, received = delivered + duplicated, and
// no count below zero. It returns nil if all hold.
func (d Delivery) Check() error {
	for _, c := range d.counts() {
		if *c.n < 0 {
			return &ledgerError{Identity: c.name + " >= 0", Left: *c.n, Right: 0}
		}
	}
	for _, i := range []struct {
		identity    string
		left, right int64
	}{
		{"scheduled = sent + unsent", d.Scheduled, d.Sent + d.Unsent},
		{"expected = delivered + lost", d.Expected, d.Delivered + d.Lost},
		{"received = delivered + duplicated", d.Received, d.Delivered + d.Duplicated},
	} {
		if i.left != i.right {
			return &ledgerError{Identity: i.identity, Left: i.left, Right: i.right}
		}
	}
	return nil
}

// Add adds the account o to d: every count, and CountsOnly if either has it.
func (d *Delivery) Add(o Delivery) {
	from := o.counts()
	for i, c := range d.counts() {
		*c.n += *from[i].n
	}
	d.CountsOnly = d.CountsOnly || o.CountsOnly
}

// Clean reports whether every scheduled message was sent and accepted, and
// every expected delivery arrived once, in order, intact and in time.
func (d Delivery) Clean() bool {
	return d.Check() == nil && d.Unsent == 0 && d.Nacked == 0 && d.Lost == 0 && d.Duplicated == 0 && d.Redelivered == 0 &&
		d.Reordered == 0 && d.Corrupted == 0 && d.Foreign == 0 && d.Late == 0
}

type namedCount struct {
	name string
	n    *int64
}

func (d *Delivery) counts() []namedCount {
	return []namedCount{
		{"scheduled", &d.Scheduled}, {"sent", &d.Sent}, {"unsent", &d.Unsent}, {"acked", &d.Acked},
		{"nacked", &d.Nacked}, {"expected", &d.Expected}, {"received", &d.Received}, {"delivered", &d.Delivered},
		{"lost", &d.Lost}, {"duplicated", &d.Duplicated}, {"redelivered", &d.Redelivered}, {"resent", &d.Resent}, {"reordered", &d.Reordered},
		{"corrupted", &d.Corrupted}, {"foreign", &d.Foreign}, {"late", &d.Late},
	}
}

// Percent prints part of whole with two decimals: "99.98 %". Only an exact 0 or
// 100 % is printed as such; what would round to them is "<0.01 %", ">99.99 %" or
// ">100 %". "n/a" where whole is not positive or part is negative.
func Percent(part, whole int64) string {
	switch {
	case whole <= 0 || part < 0:
		return "n/a"
	case part == 0:
		return "0 %"
	case part == whole:
		return "100 %"
	}
	s := fmt.Sprintf("%.2f", 100*float64(part)/float64(whole))
	switch {
	case s == "0.00":
		return "<0.01 %"
	case s == "100.00" && part < whole:
		return ">99.99 %"
	case s == "100.00":
		return ">100 %"
	}
	return s + " %"
}
