package scenarios

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// sizes is a distribution of message sizes: uniform from least to most, normal
// around middle, a weighted list, or the sizes of a trace in their order.
type sizes struct {
	least, most    int
	middle, spread float64 // mean and deviation of a normal one, which has a spread over 0
	list           []int
	upTo           []uint64 // running sums of the weights of list; nil takes the list in order
}

// tails is how many standard deviations a size of a normal distribution may be from
// the mean. Sizes beyond, 1 in 16,000, are moved to the edge.
const tails = 4

func (z *sizes) draw(random, seq uint64) int {
	switch {
	case z.list != nil && z.upTo == nil:
		return z.list[seq%uint64(len(z.list))]
	case z.list != nil:
		at := random % z.upTo[len(z.upTo)-1]
		i := 0
		for at >= z.upTo[i] {
			i++
		}
		return z.list[i]
	case z.spread > 0:
		// The inverse of the normal distribution function, of 53 bits other than 0 and 1.
		u := (float64(random>>11) + 0.5) / (1 << 53)
		n := math.Round(z.middle + z.spread*math.Sqrt2*math.Erfinv(2*u-1))
		return min(max(int(n), z.least), z.most)
	}
	return z.least + int(random%uint64(z.most-z.least+1))
}

func (z *sizes) mean() float64 {
	switch {
	case z.list != nil:
		sum, last := 0.0, uint64(0)
		for i, n := range z.list {
			weight := 1.0
			if z.upTo != nil {
				weight = float64(z.upTo[i] - last)
				last = z.upTo[i]
			}
			sum += weight * float64(n)
		}
		if z.upTo == nil {
			last = uint64(len(z.list))
		}
		return sum / float64(last)
	case z.spread > 0:
		return z.middle
	}
	return float64(z.least+z.most) / 2
}

// parseUniform reads "10-1KiB".
func parseUniform(text string) (Payload, error) {
	left, right, ok := strings.Cut(text, "-")
	if !ok {
		return Payload{}, errors.New("write uniform:LEAST-MOST, such as uniform:10-1KiB")
	}
	least, err := parseSize(left)
	if err != nil {
		return Payload{}, err
	}
	most, err := parseSize(right)
	if err == nil && most < least {
		err = errors.New("write uniform:LEAST-MOST with the smaller size first")
	}
	return Payload{Kind: PayloadRange, Size: most, Name: fmt.Sprintf("uniform:%d-%d", least, most), sizes: &sizes{least: least, most: most}}, err
}

// parseNormal reads "1KiB+-200": mean and standard deviation.
func parseNormal(text string) (Payload, error) {
	left, right, ok := strings.Cut(text, "+-")
	if !ok {
		return Payload{}, errors.New("write normal:MEAN+-DEVIATION, such as normal:1KiB+-200")
	}
	mean, err := parseSize(left)
	if err != nil {
		return Payload{}, err
	}
	spread, err := parseSize(right)
	switch {
	case err != nil:
		return Payload{}, err
	case spread == 0:
		return Payload{}, fmt.Errorf("a deviation of 0 is a fixed size: write %d", mean)
	case spread > (maxPayload-mean)/tails:
		return Payload{}, overLimit(fmt.Sprintf("%d and %d times %d", mean, tails, spread))
	}
	z := &sizes{least: max(0, mean-tails*spread), most: mean + tails*spread, middle: float64(mean), spread: float64(spread)}
	return Payload{Kind: PayloadRange, Size: z.most, Name: fmt.Sprintf("normal:%d+-%d", mean, spread), sizes: z}, nil
}

const maxWeight = 1_000_000

// parseMix reads "10*9,8KiB*1": sizes with their weights, which are 1 by default.
func parseMix(text string) (Payload, error) {
	z := &sizes{}
	var names []string
	sum := uint64(0)
	for part := range strings.SplitSeq(text, ",") {
		size, weight, weighted := strings.Cut(strings.TrimSpace(part), "*")
		n, err := parseSize(size)
		if err != nil {
			return Payload{}, err
		}
		w := int64(1)
		if weighted {
			if w, err = parseWhole("the weight after *", weight, 1, maxWeight); err != nil {
				return Payload{}, err
			}
		}
		sum += uint64(w)
		z.list, z.upTo, z.most = append(z.list, n), append(z.upTo, sum), max(z.most, n)
		names = append(names, strconv.Itoa(n)+"*"+strconv.FormatInt(w, 10))
	}
	z.least = slices.Min(z.list)
	return Payload{Kind: PayloadRange, Size: z.most, Name: "mix:" + strings.Join(names, ","), sizes: z}, nil
}
