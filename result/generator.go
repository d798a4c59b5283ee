package result

import (
	"fmt"
	"strings"
)

// generatorOf says how the load generator was the limit of c, "" if it was not. In a
// closed loop against the embedded broker both are one process, whose cost is what the
// case measures.
func generatorOf(r *Report, c *Case) string {
	if c.Bottleneck == nil || c.Bottleneck.Kind != "generator" || r.Target.Embedded && c.Offered == nil {
		return ""
	}
	return c.Bottleneck.Detail
}

// noteGenerator records on which sides the load generator was the limit.
func (cell *CellComparison) noteGenerator(base, head string) {
	cell.baseBound, cell.headBound = base != "", head != ""
	if cell.baseBound {
		cell.GeneratorLimited = append(cell.GeneratorLimited, "base: "+base)
	}
	if cell.headBound {
		cell.GeneratorLimited = append(cell.GeneratorLimited, "head: "+head)
	}
}

// discountGenerator makes a verdict inconclusive if it may be due to the load generator.
// A target that the generator limited is at least as fast as measured: a slow head may
// be faster, and so may a slow base. But a limited head that is still faster is faster,
// and a head that is slower than a limited base is slower.
func (cell *CellComparison) discountGenerator() {
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
	c.warn(CodeGeneratorLimited, fmt.Sprintf("the load generator was the limit, not the target, in %d cells of base and %d of head: there the target may be faster than measured",
		base, head), "measure with more cores, on a quieter machine, or from another machine than the target's")
}
