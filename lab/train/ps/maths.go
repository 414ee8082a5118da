package ps

import (
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	// Features is the number of parameters.
	Features = 64
	// noise is the standard deviation of what no parameters explain: the loss falls to its square.
	noise = 0.05
	// truthSeed and dataSeed set apart what is drawn of the truth and of the batches.
	truthSeed, dataSeed = 1, 2
)

// Part is the half-open range of parameters that one of several servers holds: parts differ by one parameter at most.
func Part(server, servers int) (from, to int, err error) {
	if servers < 1 || servers > Features || server < 0 || server >= servers {
		return 0, 0, fmt.Errorf("server %d of %d: want 0 to %d of 1 to %d servers", server, servers, servers-1, Features)
	}
	return server * Features / servers, (server + 1) * Features / servers, nil
}

// batch is a number of examples: y = truth·x + noise.
type batch struct {
	x [][]float64
	y []float64
}

// draw makes the batch of a number, the same for every worker. x and truth are such that y has variance 1, and so has a
// model that knows nothing a loss of 1.
func draw(number, size int) batch {
	truth := normals(rand.New(rand.NewPCG(truthSeed, 0)), Features)
	norm := 0.0
	for _, w := range truth {
		norm += w * w
	}
	r := rand.New(rand.NewPCG(dataSeed, uint64(number)))
	b := batch{x: make([][]float64, size), y: make([]float64, size)}
	for i := range b.x {
		b.x[i] = normals(r, Features)
		b.y[i] = noise*r.NormFloat64() + dot(truth, b.x[i])/math.Sqrt(norm)
	}
	return b
}

// gradient is that of the mean squared error at given parameters, and the error itself: ∇ = 2/n Σ (w·x − y) x.
func (b batch) gradient(w []float64) (g []float64, loss float64) {
	g = make([]float64, len(w))
	n := float64(len(b.x))
	for i, x := range b.x {
		miss := dot(w, x) - b.y[i]
		loss += miss * miss / n
		for k := range g {
			g[k] += 2 * miss * x[k] / n
		}
	}
	return g, loss
}

// descend takes one step of gradient descent.
func descend(w, g []float64, rate float64) {
	for i := range w {
		w[i] -= rate * g[i]
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func normals(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}
