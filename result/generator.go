package result

import (
	"fmt"
	"strings"
)

// generatorOf says how the load generator was the limit of c, "" where it was
// not. In a closed loop against the embedded broker both are one process, and
// what that takes is what is measured.
func generatorOf(r *Report, c *Case) string {
	if c.Bottleneck == nil || c.Bottleneck.Kind != "generator" || r.Target.Embedded && c.Offered == nil {
		return ""
	}
	return c.Bottleneck.Detail
}

// bound notes on which sides the load generator was the limit.
func (cell *CellComparison) bound(base, head string) {
	cell.baseBound, cell.headBound = base != "", head != ""
	if cell.baseBound {
		cell.GeneratorLimited = append(cell.GeneratorLimited, "base: "+base)
	}
	if cell.headBound {
		cell.GeneratorLimited = append(cell.GeneratorLimited, "head: "+head)
	}
}

// doubt takes back a verdict that may be the load generator's. What it limited
// was as fast at least as measured: a slow head may have been faster, and so may
// a slow base, but a head that is faster all the same is faster, and one that is
// slower than what a base did all the same is slower.
func (cell *CellComparison) doubt() {
	switch cell.Verdict {
	case Slower:
		if !cell.headBound {
			return
		}
	case Faster:
		if !cell.baseBound {
			return
		}
	case Same:
		if !cell.baseBound && !cell.headBound {
			return
		}
	default:
		return
	}
	cell.Reason = fmt.Sprintf("measured as %s, but the load generator was the limit: %s", cell.Verdict, strings.Join(cell.GeneratorLimited, "; "))
	cell.Verdict = Inconclusive
}

// noticeGenerator warns of the cells that the load generator limited, whatever
// their verdict.
func (c *comparer) noticeGenerator() {
	base, head := c.out.count(func(x *CellComparison) bool { return x.baseBound }), c.out.count(func(x *CellComparison) bool { return x.headBound })
	if base+head == 0 {
		return
	}
	c.warn(CodeGeneratorLimited, fmt.Sprintf("the load generator was the limit, not the target, in %d cells of base and %d of head: there the target was as fast at least",
		base, head), "measure with more cores or on a quieter machine, or from another one than the target's")
}
