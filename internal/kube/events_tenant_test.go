package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/quota"
	"github.com/springtide/springtide/reason"
)

// A tenant's news is reported once, and again for another day or another notice. Its jobs hear of what they give back.
func TestTenantEvents(t *testing.T) {
	q := &v1alpha1.CapacityQuota{ObjectMeta: kubetest.Meta("CapacityQuota", "", "train")}
	q.Spec.NamespaceSelector = v1alpha1.Selector{MatchLabels: map[string]string{"team": "train"}}
	r := newReported(t, append(kubetest.Shop(), q, kubetest.ElasticJob("bert"),
		kubetest.NamespaceOf("train", map[string]string{"team": "train"}))...)
	r.cycle(t, nil) // faults of the job itself are reported here
	friday := kubetest.Now.Add(72 * time.Hour)
	change := func(short, since time.Time, by int64) func(*loop.Report) {
		return func(rep *loop.Report) {
			d := &rep.Plan.Division
			d.Shares = []quota.Share{{Tenant: "train", OverOffline: fleet.Resources{CPU: fleet.MilliCPU(by)}, OverSince: since, Deadline: since.Add(10 * time.Minute),
				Bursting: true, BurstSince: kubetest.Now}}
			d.Short = []quota.Short{{Tenant: "train", From: short, By: fleet.Resources{CPU: fleet.MilliCPU(by)},
				Why: reason.Said("a window opens")}}
			d.Oversold = []quota.Oversold{{Tenant: "train", From: friday, Why: reason.Said("too much")}}
		}
	}
	shorts := func(first time.Time, by int64, next time.Time, more int64) func(*loop.Report) {
		return func(rep *loop.Report) {
			d := &rep.Plan.Division
			d.Short = []quota.Short{{Tenant: "train", From: first, Until: first.Add(time.Hour), By: fleet.Resources{CPU: fleet.MilliCPU(by)}}}
			if !next.IsZero() {
				d.Short = append(d.Short, quota.Short{Tenant: "train", From: next, By: fleet.Resources{CPU: fleet.MilliCPU(more)}})
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*loop.Report)
		want   []string
	}{
		{"all at once", change(friday, kubetest.Now, 1000), []string{"Short short of up to cpu=1 from", "Oversold ",
			"QuotaNotice cpu=0 online and cpu=1 offline", "QuotaNotice CapacityQuota train gives back cpu=1", "Burst "}},
		{"other amounts, another hour", change(friday.Add(time.Hour), kubetest.Now, 2000), nil},
		{"another day", change(friday.Add(24*time.Hour), kubetest.Now, 2000), []string{"Short "}},
		{"another notice", change(friday.Add(24*time.Hour), kubetest.Now.Add(5*time.Minute), 2000),
			[]string{"QuotaNotice cpu=0", "QuotaNotice CapacityQuota"}},
		{"parcels", func(rep *loop.Report) {
			rep.Plan.Division.Shares = []quota.Share{{Tenant: "train", OverSince: kubetest.Now.Add(8 * time.Minute),
				Deadline: friday.Add(time.Minute),
				Parcels: []quota.ParcelShare{{Class: fleet.ParcelClass{Kind: fleet.KindNode, GPUModel: "H100"}, Used: 3,
					Over: 1}}}}
		}, []string{"QuotaNotice its offline work is to leave 1 of 3 Node/H100 by", "QuotaNotice CapacityQuota train leaves 1 of 3 Node/H100 by"}},
		{"nothing", nil, nil},
		{"tonight, and Sunday for the first time", shorts(kubetest.Now.Add(time.Hour), 5000,
			kubetest.Now.Add(144*time.Hour), 200_000), []string{"Short short of up to cpu=5 from 2026",
			"Short short of up to cpu=200 from"}},
		{"the same", shorts(kubetest.Now.Add(time.Hour+15*time.Minute), 6000, kubetest.Now.Add(144*time.Hour), 199_000), nil},
		{"tonight alone", shorts(kubetest.Now.Add(time.Hour), 6000, time.Time{}, 0), nil},
		{"both again", shorts(kubetest.Now.Add(time.Hour), 6000, kubetest.Now.Add(144*time.Hour), 200_000), nil},
		{"tonight twice as much and more", shorts(kubetest.Now.Add(time.Hour), 11_000, kubetest.Now.Add(144*time.Hour),
			200_000), []string{"Short short of up to cpu=11 from"}},
		{"another one tonight that is worse", shorts(kubetest.Now.Add(time.Hour), 11_000,
			kubetest.Now.Add(90*time.Minute), 100_000), []string{"Short short of up to cpu=11 from"}},
	} {
		_, got := r.cycle(t, c.change)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
			continue
		}
		for i, w := range c.want {
			if _, text, _ := strings.Cut(got[i], " "); !strings.HasPrefix(text, w) {
				t.Errorf("%s: %q, want %q", c.name, got[i], w)
			}
		}
	}
}
