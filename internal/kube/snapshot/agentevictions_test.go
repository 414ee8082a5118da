package snapshot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/convert"
)

// The agent's entry on its node's share counts in the pool that the node is at home in, and in no other.
func TestAgentEvictionsCountInTheirPool(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	share := convert.NewShareFacts(
		&v1alpha1.NodeShare{Status: v1alpha1.NodeShareStatus{Evictions: []v1alpha1.AgentEviction{{Owner: "shop/Job/x",
			Rule: "MemoryLow", Time: at}}}}).Share
	a := &assembly{s: &fleet.Snapshot{Pools: []fleet.Pool{{ID: "batch"}, {ID: "web"}}}}
	a.charge(&fleet.Node{Pool: "web", Share: share})
	a.charge(&fleet.Node{Share: share}) // of no pool
	want := fleet.AgentEviction{Owner: "shop/Job/x", At: at.Time}
	if got := a.s.Pools[1].Evicted; len(got) != 1 || got[0] != want || len(a.s.Pools[0].Evicted) != 0 {
		t.Errorf("%+v", a.s.Pools)
	}
}
