package sim

import (
	"math"
	"time"

	"github.com/springtide/springtide/internal/loop/protocol"
	"github.com/springtide/springtide/sim/scenario"
)

// redelivery is a write that was delivered, and is delivered once more at a tick.
type redelivery struct {
	at    int32
	write *protocol.Write
}

// marking is the version that a machine has since its marks were written, and the leader that wrote them.
type marking struct {
	version string
	leader  int64
}

// redeliveredWithin is how much later a write comes again at the most: requests that hang in a proxy outlive the plan that made them. Most come
// soon.
const redeliveredWithin = 5 * time.Minute

// sent is a write as the request of it is: the patch of a node carries the version that was read just before, by which the API server refuses it when
// it comes again.
func (c *controller) sent(w *protocol.Write) *protocol.Write {
	if w.Object.Kind != protocol.ObjectNode {
		return w
	}
	out := *w
	out.If.Version = c.Look(w.Object).Version
	return &out
}

// repeats draws whether what was just written comes again, and when.
func (c *controller) repeats(w *protocol.Write) {
	if f := c.w.on(scenario.DeliveredTwice); f != nil && f.rand.Float64() < f.Share {
		later := math.Pow(float64(ticks(redeliveredWithin)), f.rand.Float64())
		c.redeliveries = append(c.redeliveries, redelivery{c.w.tick + int32(later), w})
	}
}

// redeliver delivers what is due to come again. The API alone judges it, by the preconditions that the write carries.
func (c *controller) redeliver() {
	c.redelivering = true
	defer func() { c.redelivering = false }()
	var later []redelivery
	for _, r := range c.redeliveries {
		if r.at > c.w.tick {
			later = append(later, r)
			continue
		}
		c.api.Do(r.write)
	}
	c.redeliveries = later
}

// unanswer takes the answer to a notice off a member, as each notice does that is not a repeat of the last one.
func (w *World) unanswer(id int32) {
	if p := &w.pods[id]; p.ackEpoch != 0 {
		p.ackEpoch = 0
		w.jobs[p.owner].busy++
	}
}
