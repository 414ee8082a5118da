package portrait

import (
	"math"
	"time"

	"github.com/springtide/springtide/fleet"
)

// Cost holds the decayed sums of a robust regression of CPU on load, both by replica:
//
//	cpu / ready = idle + perLoad · load / ready
//
// Samples that miss the line by much (a deployment, a start-up, a noisy neighbour) weigh less, by Huber's rule.
type Cost struct {
	// W, WX, WY, WXX and WXY are the weighted sums of 1, x, y, x² and xy.
	W, WX, WY, WXX, WXY float64
	// Miss is the decayed mean distance from the line.
	Miss float64
	N    float64
	// Replicas says whether x and y are by replica; a service that does not export its ready replicas has a line for
	// its total, whose intercept says nothing about one replica.
	Replicas bool
	// Misses, Squares and Next are the decayed sums of 1, r² and r times the r before it, where r is a sample's
	// distance from the line that was drawn without it, and Last is the newest r. They show how uncertain the line is.
	Misses, Squares, Next, Last float64
}

const (
	// costMemory is the number of samples after which an old one counts 1/e: about a week of five-minute samples, since releases change
	// what a request costs.
	costMemory = 2000
	// costLeast is the number of samples before the line is believed: an hour of them.
	costLeast = 12
	// huber is the distance from the line, in mean distances, beyond which a sample weighs less.
	huber = 2.5
	// missFloor is the least distance that counts as usual, as a share of the mean CPU: a line that fitted perfectly so far must not refuse
	// every later sample.
	missFloor = 0.01
	// idlePull shrinks the idle share while loads by replica hardly vary: a scaler that holds them constant leaves the line's slope open, and
	// then all CPU is taken for cost. It stands for this share of x's own size as the spread that the slope needs.
	idlePull = 0.05
)

// learn takes one step in; gaps are skipped.
func (c *Cost) learn(load, cpu, ready float64) {
	perReplica := ready > 0
	if !perReplica {
		ready = 1
	}
	x, y := load/ready, cpu/ready
	if math.IsNaN(x) || math.IsNaN(y) || x < 0 || y < 0 || x > math.MaxFloat32 || y > math.MaxFloat32 {
		return
	}
	if perReplica != c.Replicas {
		if c.N > 0 && !perReplica {
			return // a step whose replicas are not known, among others
		}
		*c = Cost{Replicas: perReplica}
	}
	w := 1.0
	if c.N >= costLeast {
		idle, slope, _ := c.line()
		miss := math.Abs(y - idle - slope*x)
		c.doubt(y - idle - slope*x)
		usual := max(c.Miss, missFloor*c.WY/c.W)
		if far := huber * usual; miss > far {
			w = far / miss
		}
		c.Miss += (min(miss, 10*usual) - c.Miss) / min(c.N, costMemory)
	} else if c.N > 0 {
		idle, slope, _ := c.line()
		c.Miss += (math.Abs(y-idle-slope*x) - c.Miss) / (c.N + 1)
	}
	keep := 1 - 1/float64(costMemory)
	c.W, c.WX, c.WY = keep*c.W+w, keep*c.WX+w*x, keep*c.WY+w*y
	c.WXX, c.WXY = keep*c.WXX+w*x*x, keep*c.WXY+w*x*y
	c.N++
}

// line is the idle share and the slope; ok is false while there is no load to fit a slope to.
func (c *Cost) line() (idle, slope float64, ok bool) {
	if !(c.W > 0) || !(c.WXX > 0) {
		return 0, 0, false
	}
	mx, my := c.WX/c.W, c.WY/c.W
	through := c.WXY / c.WXX
	spread := max(c.WXX/c.W-mx*mx, 0)
	covariance := c.WXY/c.W - mx*my
	pull := idlePull * idlePull * mx * mx
	slope = (covariance + pull*through) / (spread + pull)
	idle = my - slope*mx
	if !(slope > 0) || idle < 0 {
		return 0, through, through > 0
	}
	return idle, slope, true
}

// price brings CPUPerLoad and CPUIdle up to date as of a time.
func (p *Portrait) price(at time.Time) {
	c := &p.Cost
	idle, slope, ok := c.line()
	if c.N < costLeast || !ok {
		return
	}
	p.CPUPerLoad = fleet.KnownAt(slope, at)
	if c.Replicas {
		p.CPUIdle = fleet.KnownAt(idle, at)
	}
}
