package model

import "math"

const (
	// clusterStarts is the number of times that grouping starts again, clusterSteps the number of steps of each.
	clusterStarts, clusterSteps = 8, 40
)

// cluster groups points by k-means (S. P. Lloyd, "Least squares quantization in PCM", 1982), several times from seeds that are drawn far
// apart (D. Arthur, S. Vassilvitskii, "k-means++", 2007) with a fixed dice, and returns the centres of the tightest grouping. Empty groups are left out.
func cluster(points [][nTrait]float64, k int) (centres [][nTrait]float64) {
	draw := dice(uint64(len(points)))
	least := math.Inf(1)
	for range clusterStarts {
		c := seeds(points, k, draw)
		l, spread := make([]int, len(points)), 0.0
		for range clusterSteps {
			spread = assign(points, c, l)
			c = middles(points, l, len(c))
		}
		if spread < least {
			least, centres = spread, c
		}
	}
	return centres
}

// seeds draws points with a chance that grows with the square of the distance to the nearest one drawn before.
func seeds(points [][nTrait]float64, k int, draw func() float64) [][nTrait]float64 {
	out := [][nTrait]float64{points[int(draw()*float64(len(points)))]}
	far := make([]float64, len(points))
	for len(out) < k {
		sum := 0.0
		for i, p := range points {
			if d := distance(p, out[len(out)-1]); len(out) == 1 || d < far[i] {
				far[i] = d
			}
			sum += far[i]
		}
		if sum == 0 {
			break
		}
		want, at := draw()*sum, 0
		for i, d := range far {
			if want -= d; want < 0 {
				at = i
				break
			}
		}
		out = append(out, points[at])
	}
	return out
}

// assign labels each point with its nearest centre and returns the sum of the squared distances.
func assign(points, centres [][nTrait]float64, labels []int) (spread float64) {
	for i, p := range points {
		least := math.Inf(1)
		for c := range centres {
			if d := distance(p, centres[c]); d < least {
				labels[i], least = c, d
			}
		}
		spread += least
	}
	return spread
}

// middles are the means of the labelled points; a label without points is dropped and the labels above it move down.
func middles(points [][nTrait]float64, labels []int, n int) [][nTrait]float64 {
	sum, count := make([][nTrait]float64, n), make([]int, n)
	for i, p := range points {
		count[labels[i]]++
		for j := range p {
			sum[labels[i]][j] += p[j]
		}
	}
	at, out := make([]int, n), sum[:0]
	for c := range sum {
		at[c] = len(out)
		if count[c] > 0 {
			for j := range sum[c] {
				sum[c][j] /= float64(count[c])
			}
			out = append(out, sum[c])
		}
	}
	for i := range labels {
		labels[i] = at[labels[i]]
	}
	return out
}
