package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %.6f, want %.6f ± %g", what, got, want, tolerance)
	}
}

func TestErlangC(t *testing.T) {
	// One server waits with probability ρ, two with 2ρ²/(1+ρ): closed forms.
	for _, rho := range []float64{0.1, 0.5, 0.75, 0.99} {
		near(t, "C(1)", ErlangC(1, rho), rho, 1e-12)
		near(t, "C(2)", ErlangC(2, 2*rho), 2*rho*rho/(1+rho), 1e-12)
	}
	// The definition with factorials: (a^c/c!)·(c/(c−a)) / (Σ_{k<c} a^k/k! + (a^c/c!)·(c/(c−a))).
	for _, c := range []int{4, 8, 16} {
		a := 0.8 * float64(c)
		term, sum := 1.0, 0.0
		for k := range c {
			sum += term
			term *= a / float64(k+1)
		}
		last := term * float64(c) / (float64(c) - a)
		near(t, "C(c)", ErlangC(c, a), last/(sum+last), 1e-12)
	}
	// ITU-T Teletraffic Engineering Handbook's recursion at 8 erlangs and 10 servers: E = 0.1217, so D = 0.4092.
	near(t, "C(10, 8)", ErlangC(10, 8), 0.4092, 5e-5)
	near(t, "C at saturation", ErlangC(4, 4), 1, 0)
	near(t, "C without load", ErlangC(4, 0), 0, 0)
}

func TestTailOfOneServer(t *testing.T) {
	// M/M/1: P(T > x) = e^(−(1−ρ)x).
	for _, rho := range []float64{0, 0.3, 0.9} {
		for _, x := range []float64{0.1, 1, 20} {
			near(t, "tail", Tail(1, rho, x), math.Exp(-(1-rho)*x), 1e-12)
		}
		near(t, "p99", Quantile(1, rho, 0.99), math.Log(100)/(1-rho), 1e-9)
	}
}

func TestTailIsSmoothWhereTheFormulaHasAHole(t *testing.T) {
	// c−1 = a at c = 4, ρ = 0.75.
	for _, x := range []float64{0.5, 3, 10} {
		near(t, "tail at the hole", Tail(4, 0.75, x), (Tail(4, 0.75-1e-6, x)+Tail(4, 0.75+1e-6, x))/2, 1e-9)
	}
}

// An independent origin: the queue itself, simulated request by request.
func TestTailAgainstSimulation(t *testing.T) {
	const n = 600_000
	for _, tc := range []struct {
		c   int
		rho float64
	}{{4, 0.75}, {8, 0.8}, {16, 0.85}} {
		r := rand.New(rand.NewPCG(1, uint64(tc.c)))
		free := make([]float64, tc.c) // when each core becomes free
		times := make([]float64, 0, n)
		now := 0.0
		for range n {
			now += r.ExpFloat64() / (tc.rho * float64(tc.c))
			first := 0
			for i := range free {
				if free[i] < free[first] {
					first = i
				}
			}
			done := max(now, free[first]) + r.ExpFloat64()
			free[first] = done
			times = append(times, done-now)
		}
		slices.Sort(times)
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want := times[int(q*n)]
			if got := Quantile(tc.c, tc.rho, q); math.Abs(got/want-1) > 0.025 {
				t.Errorf("c = %d, ρ = %v: the formula's q%v is %.3f, the simulation's %.3f", tc.c, tc.rho, q, got, want)
			}
		}
	}
}

func TestMaxUtilisationInvertsTheQuantile(t *testing.T) {
	for _, c := range []int{4, 8, 16} {
		for _, rho := range []float64{0.5, 0.75, 0.9} {
			near(t, "ρ", MaxUtilisation(c, 0.99, Quantile(c, rho, 0.99)), rho, 1e-6)
		}
	}
	near(t, "ρ of a limit that no pod meets", MaxUtilisation(4, 0.99, 4.6), 0, 0)
}
