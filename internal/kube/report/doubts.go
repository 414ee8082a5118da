package report

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/leadership"
	"github.com/springtide/springtide/internal/kube/recorder"
)

// ReportDoubts names what our own objects say and no leader can have written, once when it begins or changes.
func (c *Reporter) ReportDoubts(leader int64) {
	for _, o := range c.Services.All() {
		c.doubtLeader(recorder.Reference("ElasticService", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Pools.All() {
		c.doubtLeader(recorder.Reference("CapacityPool", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Tenants.All() {
		c.doubtLeader(recorder.Reference("CapacityQuota", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Jobs.All() {
		c.doubtLeader(recorder.Reference("ElasticJob", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Festivals.All() {
		c.doubtLeader(recorder.Reference("FestivalPlan", &o.Header), o.API.Status.LeaderEpoch, leader)
	}
	for _, o := range c.Loans.All() {
		c.doubtLeader(recorder.Reference("Loan", &o.Header), o.API.Status.LeaderEpoch, leader)
		c.doubtLoan(recorder.Reference("Loan", &o.Header), "status.epoch", max(1, o.API.Status.Epoch))
	}
	for _, o := range c.Shares.All() {
		c.doubtLeader(recorder.Reference("NodeShare", &o.Header), o.API.Spec.LeaderEpoch, leader)
		for i := range o.API.Spec.Parcels {
			c.doubtLoan(recorder.Reference("NodeShare", &o.Header), fmt.Sprintf("spec.parcels[%d].epoch", i),
				o.API.Spec.Parcels[i].Epoch)
		}
	}
}

// ReportDated names the times that the snapshot did not believe, once when they begin or change.
func (c *Reporter) ReportDated() {
	list := c.NotBelievedTimes()
	now := map[string]bool{}
	for _, d := range list {
		key := "dated " + d.Kind + " " + d.Of.Namespace + "/" + d.Of.Name + " " + d.Field
		if now[key] = true; !c.News(key, d.String()) {
			continue
		}
		switch d.Kind {
		case "ElasticService":
			c.NotBelieved(recorder.Reference("ElasticService", d.Of), d.Doubt)
		case "ElasticJob":
			c.NotBelieved(recorder.Reference("ElasticJob", d.Of), d.Doubt)
		case "CapacityQuota":
			c.NotBelieved(recorder.Reference("CapacityQuota", d.Of), d.Doubt)
		case "NodeShare":
			c.NotBelieved(recorder.Reference("NodeShare", d.Of), d.Doubt)
		}
	}
	maps.DeleteFunc(c.Said, func(key, _ string) bool { return strings.HasPrefix(key, "dated ") && !now[key] })
}

// doubtLeader names the epoch of a leader that none can have reached.
func (c *Reporter) doubtLeader(ref *corev1.ObjectReference, epoch, leader int64) {
	key := "doubt " + ref.Kind + " " + ref.Namespace + "/" + ref.Name
	if leadership.Believable(epoch, leader) {
		c.News(key, "")
		return
	}
	if d := (recorder.Doubt{Field: "leaderEpoch", Value: epoch, Then: recorder.Overwritten}); c.News(key, d.String()) {
		c.NotBelieved(ref, d)
	}
}

// doubtLoan names the epoch of a loan that none can have reached.
func (c *Reporter) doubtLoan(ref *corev1.ObjectReference, field string, epoch int64) {
	key := "doubt " + ref.Kind + " " + ref.Name + " " + field
	if facts.Epoch(epoch) == epoch {
		c.News(key, "")
		return
	}
	if d := (recorder.Doubt{Field: field, Value: epoch,
		Then: "hand-overs of a loan are counted from the start again"}); c.News(key, d.String()) {
		c.NotBelieved(ref, d)
	}
}
