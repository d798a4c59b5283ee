package stats

import "math"

// normalDF is the number of degrees of freedom from which two terms of the
// expansion of Student's t around the normal distribution are exact to float64.
const normalDF = 1e5

// StudentTQuantile is the quantile p (0 < p < 1) of Student's t distribution
// with df > 0 degrees of freedom, with a relative error of about 1e-12. It is NaN
// outside of that domain. It inverts StudentTTail, whose continued fraction does
// not suffer from cancellation.
func StudentTQuantile(p, df float64) float64 {
	switch {
	case !(p > 0 && p < 1) || !(df > 0):
		return math.NaN()
	case p == 0.5:
		return 0
	case p < 0.5:
		return -upperQuantile(p, df)
	}
	return upperQuantile(1-p, df)
}

// upperQuantile returns the t > 0 whose upper tail probability is q < 0.5.
func upperQuantile(q, df float64) float64 {
	if df >= normalDF {
		return nearNormal(q, df)
	}
	hi := 1.0
	for StudentTTail(hi, df) > q && hi < math.MaxFloat64/2 {
		hi *= 2
	}
	lo := 0.0
	for range 200 {
		mid := (lo + hi) / 2
		if mid == lo || mid == hi {
			break
		}
		if StudentTTail(mid, df) > q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// nearNormal is the Cornish-Fisher expansion of the quantile: Abramowitz and
// Stegun, Handbook of Mathematical Functions, 26.7.5. The next term is below 1e-14
// for df >= normalDF.
func nearNormal(q, df float64) float64 {
	z := math.Sqrt2 * math.Erfcinv(2*q)
	z3, z5 := z*z*z, z*z*z*z*z
	return z + (z3+z)/(4*df) + (5*z5+16*z3+3*z)/(96*df*df)
}

// StudentTTail is the probability that a value from Student's t distribution with
// df degrees of freedom exceeds t >= 0: half of I(df/(df+t^2); df/2, 1/2).
func StudentTTail(t, df float64) float64 {
	return 0.5 * regIncBeta(df/2, 0.5, df/(df+t*t), t*t/(df+t*t))
}

// regIncBeta is the regularised incomplete beta function I(x; a, b). The caller
// passes y = 1-x as well, so that no digits are lost near either end. The fraction
// is DLMF 8.17.22; where it converges slowly, 8.17.4 exchanges the two ends.
func regIncBeta(a, b, x, y float64) float64 {
	if x <= 0 {
		return 0
	}
	if y <= 0 {
		return 1
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	// Log1p keeps the digits of whichever of x and y is close to 1.
	lx, ly := math.Log(x), math.Log(y)
	if x > 0.5 {
		lx = math.Log1p(-y)
	} else {
		ly = math.Log1p(-x)
	}
	front := math.Exp(lab - la - lb + a*lx + b*ly)
	if x < (a+1)/(a+b+2) {
		return front * betaFraction(a, b, x) / a
	}
	return 1 - front*betaFraction(b, a, y)/b
}

// betaFraction evaluates the continued fraction of the incomplete beta function
// by Lentz's method as modified by Thompson and Barnett.
func betaFraction(a, b, x float64) float64 {
	const tiny = 1e-300
	guard := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/guard(1-(a+b)*x/(a+1))
	h := d
	for i := 1; i <= 10000; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/guard(1+even*d), guard(1+even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/guard(1+odd*d), guard(1+odd/c)
		h *= d * c
		if math.Abs(d*c-1) < 1e-16 {
			break
		}
	}
	return h
}
