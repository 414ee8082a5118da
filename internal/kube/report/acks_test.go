package report

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agent "github.com/springtide/springtide/agent/share"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
)

// TestAcknowledgedBy: every live partition counts, a dead one until its last requests are over, and the margin stays
// where others may bind.
func TestAcknowledgedBy(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	share := &watch.OwnShare{Facts: convert.ShareFacts{Generation: 7,
		Acks:  map[string]int64{"springtide-scheduler-0": 7, "springtide-scheduler-1": 6},
		Share: fleet.Share{Parcels: []fleet.ShareParcel{{Holder: "web", Next: "batch"}}}}}
	lease := func(n, holder string, age time.Duration) *watch.LeaseFacts {
		return &watch.LeaseFacts{Header: object.HeaderOf(&metav1.ObjectMeta{Name: v1alpha1.SchedulerLeasePrefix + n}),
			Holder: holder, Duration: 15 * time.Second, Seen: now.Add(-age)}
	}
	ours := map[fleet.PoolID]string{"web": "springtide", "batch": "springtide"}
	for _, c := range []struct {
		name       string
		leases     []*watch.LeaseFacts
		schedulers map[fleet.PoolID]string
		want       agent.Acks
	}{
		{"the one partition acknowledged", []*watch.LeaseFacts{lease("0", "a", 0)}, ours, agent.AcksGiven},
		{"a live one acknowledged an older share", []*watch.LeaseFacts{lease("0", "a", 0), lease("1", "b", 0)}, ours,
			agent.AcksOwed},
		{"a dead one may still have a request under way", []*watch.LeaseFacts{lease("0", "a", 0),
			lease("1", "b", time.Minute)}, ours, agent.AcksOwed},
		{"a dead one is over", []*watch.LeaseFacts{lease("0", "a", 0), lease("1", "b", 2*time.Minute)}, ours,
			agent.AcksGiven},
		{"one that gave its lease up", []*watch.LeaseFacts{lease("0", "a", 0), lease("1", "", 0)}, ours, agent.AcksGiven},
		{"no scheduler ran", nil, ours, agent.AcksNone},
		{"another scheduler serves a pool", []*watch.LeaseFacts{lease("0", "a", 0)},
			map[fleet.PoolID]string{"web": "springtide"}, agent.AcksNone},
		{"another one serves a pool, and ours has not answered", []*watch.LeaseFacts{lease("1", "b", 0)},
			map[fleet.PoolID]string{"web": "springtide"}, agent.AcksOwed},
		{"others serve both pools", []*watch.LeaseFacts{lease("1", "b", 0)}, nil, agent.AcksNone},
	} {
		if got := acknowledged(share, c.leases, c.schedulers, now); got != c.want {
			t.Errorf("%s: %d", c.name, got)
		}
	}
}
