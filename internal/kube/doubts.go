package kube

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/object"
)

// doubt is a number of an object that is not believed: its field, what it says, and what becomes of it.
type doubt struct {
	field string
	value any
	then  string
}

func (d *doubt) String() string {
	return fmt.Sprintf("%s is %v, which is not believed: %s", d.field, d.value, d.then)
}

// unbelieved counts numbers of objects that were not believed.
var unbelieved = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "springtide_numbers_not_believed_total",
	Help: "Numbers on objects that were not believed, by kind and field: no leader, or no loan, can have counted so far. An event on the object names each."},
	[]string{"kind", "field"})

// notBelieved names a doubt on its object, in the log and in a count.
func (c *recorder) notBelieved(ref *corev1.ObjectReference, d doubt) {
	unbelieved.WithLabelValues(ref.Kind, d.field).Inc()
	c.log.Warn("a number is not believed", "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "field", d.field, "value", d.value)
	c.event(ref, catalog.EventNotBelieved, d.field, d.value, d.then)
}

// notBelievedIn is notBelieved for an object as a new leader lists it.
func (c *recorder) notBelievedIn(gvr schema.GroupVersionResource, o metav1.Object, d doubt) {
	h := object.HeaderOf(o)
	switch gvr {
	case object.GVRPools:
		c.notBelieved(reference("CapacityPool", &h), d)
	case object.GVRLoans:
		c.notBelieved(reference("Loan", &h), d)
	case object.GVRShares:
		c.notBelieved(reference("NodeShare", &h), d)
	}
}

// reportDoubts names what our own objects say and no leader can have written, once when it begins or changes.
func (c *reports) reportDoubts(leader int64) {
	for _, o := range c.Services.All() {
		c.doubtLeader(reference("ElasticService", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Pools.All() {
		c.doubtLeader(reference("CapacityPool", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Tenants.All() {
		c.doubtLeader(reference("CapacityQuota", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Jobs.All() {
		c.doubtLeader(reference("ElasticJob", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Festivals.All() {
		c.doubtLeader(reference("FestivalPlan", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Loans.All() {
		c.doubtLeader(reference("Loan", &o.Header), o.API.Status.LeaderEpoch, leader)
		c.doubtLoan(reference("Loan", &o.Header), "status.epoch", max(1, o.API.Status.Epoch))
	}
	for _, o := range c.Shares.All() {
		c.doubtLeader(reference("NodeShare", &o.Header), o.API.Spec.LeaderEpoch, leader)
		for i := range o.API.Spec.Parcels {
			c.doubtLoan(reference("NodeShare", &o.Header), fmt.Sprintf("spec.parcels[%d].epoch", i), o.API.Spec.Parcels[i].Epoch)
		}
	}
}

// aheadSpan is how far ahead of this controller's clock a time may lie that says what happened: clocks run apart, and times are rounded up.
const aheadSpan = 10 * time.Minute

// restSpan and retrySpan are how far ahead the end of a rest of a machine, and of the back-off of a gang, may lie: both are an hour at most by default.
const restSpan, retrySpan = 24 * time.Hour, 24 * time.Hour

// past is a time of something that happened; zero where it lies ahead of now by more than clocks run apart. An object that says that it happened in
// 2099 would be waited for until then.
func (a *assembly) past(kind string, h *object.Header, field string, t time.Time) time.Time {
	return a.until(kind, h, field, t, aheadSpan)
}

// until is a time that lies ahead by no more than a span; zero where it does, and then it is named on its object.
func (a *assembly) until(kind string, h *object.Header, field string, t time.Time, span time.Duration) time.Time {
	if !t.After(a.s.At.Add(span)) {
		return t
	}
	a.doubts = append(a.doubts, dated{kind, h, doubt{field, t.UTC().Format(time.RFC3339), "it lies further ahead than it can, and counts as not set"}})
	return time.Time{}
}

// dated is a doubt on a time, and the object that has it.
type dated struct {
	kind string
	of   *object.Header
	doubt
}

// reportDated names the times that the snapshot did not believe, once when they begin or change.
func (c *reports) reportDated() {
	list := c.notBelievedTimes()
	now := map[string]bool{}
	for _, d := range list {
		key := "dated " + d.kind + " " + d.of.Namespace + "/" + d.of.Name + " " + d.field
		if now[key] = true; !c.news(key, d.String()) {
			continue
		}
		switch d.kind {
		case "ElasticService":
			c.notBelieved(reference("ElasticService", d.of), d.doubt)
		case "ElasticJob":
			c.notBelieved(reference("ElasticJob", d.of), d.doubt)
		case "CapacityQuota":
			c.notBelieved(reference("CapacityQuota", d.of), d.doubt)
		case "NodeShare":
			c.notBelieved(reference("NodeShare", d.of), d.doubt)
		}
	}
	maps.DeleteFunc(c.said, func(key, _ string) bool { return strings.HasPrefix(key, "dated ") && !now[key] })
}

// overwritten is what becomes of the epoch of a leader that is not believed.
const overwritten = "no leader of this installation reached it, and the next write puts it right"

// doubtLeader names the epoch of a leader that none can have reached.
func (c *reports) doubtLeader(ref *corev1.ObjectReference, epoch, leader int64) {
	key := "doubt " + ref.Kind + " " + ref.Namespace + "/" + ref.Name
	if leadership.Believable(epoch, leader) {
		c.news(key, "")
		return
	}
	if d := (doubt{"leaderEpoch", epoch, overwritten}); c.news(key, d.String()) {
		c.notBelieved(ref, d)
	}
}

// doubtLoan names the epoch of a loan that none can have reached.
func (c *reports) doubtLoan(ref *corev1.ObjectReference, field string, epoch int64) {
	key := "doubt " + ref.Kind + " " + ref.Name + " " + field
	if facts.Epoch(epoch) == epoch {
		c.news(key, "")
		return
	}
	if d := (doubt{field, epoch, "hand-overs of a loan are counted from the start again"}); c.news(key, d.String()) {
		c.notBelieved(ref, d)
	}
}
