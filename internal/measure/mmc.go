package measure

import "math"

// The queue of one pod: M/M/c. Requests arrive at random, each wants one core for an exponentially distributed time of mean s, and the
// pod serves c of them at once in order of arrival. Times below are in units of s, ρ is the utilisation λs/c, a = λs the load in erlangs.
//
// With C(c, a), Erlang's probability of having to wait, the time in the system has the tail
//
//	P(T > x) = e^(−x) · (1 + C · (1 − e^(−(c−1−a)x)) / (c−1−a))        and, for c−1 = a,        e^(−x) · (1 + C·x)
//
// (D. Gross, C. Harris, Fundamentals of Queueing Theory, section 2.3; L. Kleinrock, Queueing Systems I, section 3.5).

// ErlangC is the probability that a request finds all c cores busy, at a load of a < c erlangs.
func ErlangC(c int, a float64) float64 {
	if a <= 0 {
		return 0
	}
	if a >= float64(c) {
		return 1
	}
	// Erlang B by its recursion, which no factorial can overflow; then C = B / (1 − ρ(1−B)).
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho*(1-b))
}

// Tail is the share of requests that take longer than x mean service times at utilisation rho < 1.
func Tail(c int, rho, x float64) float64 {
	if x <= 0 {
		return 1
	}
	a := rho * float64(c)
	return tail(c, a, ErlangC(c, a), x)
}

func tail(c int, a, wait, x float64) float64 {
	alone := math.Exp(-x)
	d := float64(c) - 1 - a
	if math.Abs(d) < 1e-9 {
		return alone * (1 + wait*x)
	}
	return alone + wait*(alone-math.Exp(-(d+1)*x))/d
}

// Quantile is the time, in mean service times, that a share q of the requests keep under at utilisation rho < 1.
func Quantile(c int, rho, q float64) float64 {
	a := rho * float64(c)
	wait := ErlangC(c, a)
	lo, hi := 0.0, 1.0
	for tail(c, a, wait, hi) > 1-q {
		lo, hi = hi, 2*hi
	}
	return bisect(lo, hi, func(x float64) bool { return tail(c, a, wait, x) > 1-q })
}

// MaxUtilisation is the largest utilisation at which a share q of the requests keep under x mean service times; 0 where x is too short
// even for an idle pod.
func MaxUtilisation(c int, q, x float64) float64 {
	if Tail(c, 0, x) > 1-q {
		return 0
	}
	return bisect(0, 1, func(rho float64) bool { return rho < 1 && Tail(c, rho, x) <= 1-q })
}

// bisect finds where below stops to hold, between lo (where it holds) and hi (where it does not).
func bisect(lo, hi float64, below func(float64) bool) float64 {
	for range 60 {
		if mid := (lo + hi) / 2; below(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
