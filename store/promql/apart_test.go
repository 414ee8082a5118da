package promql

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/portrait/capacity"
)

// TestAside: minutes in which pods of two ReplicaSets are ready are a roll-over's, and those in which a CPU limit holds
// replicas back are apart too; a single throttled period is not.
func TestAside(t *testing.T) {
	pod := func(name, set, ready string) string {
		return `kube_pod_owner{namespace="shop",pod="` + name + `",owner_kind="ReplicaSet",owner_name="` + set +
			`",owner_is_controller="true"} 1x60
kube_pod_status_ready{namespace="shop",pod="` + name + `",condition="true"} ` + ready + "\n"
	}
	set := func(name string) string {
		return `kube_replicaset_owner{namespace="shop",replicaset="` + name +
			`",owner_kind="Deployment",owner_name="cart",owner_is_controller="true"} 1x60` + "\n"
	}
	periods := func(name, values string) string {
		if name != "" {
			name += "_"
		}
		return `container_cpu_cfs_` + name + `periods_total{namespace="shop",pod="cart-1-a",container="app"} ` + values + "\n"
	}
	for _, c := range []struct {
		name, script string
		want         []portrait.ApartSpan
	}{
		{"steady", pod("cart-1-a", "cart-1", "1x60") + pod("cart-1-b", "cart-1", "1x60") + set("cart-1"), nil},
		{"rolls over", pod("cart-1-a", "cart-1", "1x16 0x43") + pod("cart-2-a", "cart-2", "0x7 1x52") + set("cart-1") +
			set("cart-2"), []portrait.ApartSpan{{From: at(time.Minute), To: at(4 * time.Minute), Why: capacity.RollOver}}},
		{"surge not ready yet", pod("cart-1-a", "cart-1", "1x60") + pod("cart-2-a", "cart-2", "0x60") + set("cart-1") +
			set("cart-2"), nil},
		{"throttled", pod("cart-1-a", "cart-1", "1x60") + set("cart-1") + periods("", "0+150x60") +
			periods("throttled", "0x20 0+75x19 1425x20"),
			[]portrait.ApartSpan{{From: at(6 * time.Minute), To: at(10 * time.Minute), Why: capacity.Throttled}}},
		{"a burst here and there", pod("cart-1-a", "cart-1", "1x60") + set("cart-1") + periods("", "0+150x60") +
			periods("throttled", "0+15x60"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProm(t, "load 15s\n"+c.script+oneCPU, 1e6)
			h := p.history(Options{ScrapeInterval: 15 * time.Second})
			services := measured(fleet.Latency(0.99, time.Second))
			batches, err := h.Since(t.Context(), services, at(0), at(14*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, b := range batches {
				found = true
				if d := cmp.Diff(c.want, b.Levels.Apart); d != "" {
					t.Error(d)
				}
			}
			if !found {
				t.Error("no history")
			}
		})
	}
}
