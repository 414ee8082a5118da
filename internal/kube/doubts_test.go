package kube

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/kubetest"
)

// Times of what happened that lie in the future, and ends of waits that lie too far ahead, count as not set, and are named on their objects. All others are
// believed, however long ago.
func TestTimesThatLieAhead(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		at         time.Time
		past, rest bool
	}{
		"1970":              {year(1970), true, true},
		"a minute ago":      {kubetest.Now.Add(-time.Minute), true, true},
		"clocks run apart":  {kubetest.Now.Add(9 * time.Minute), true, true},
		"ahead by an hour":  {kubetest.Now.Add(time.Hour), false, true},
		"ahead by two days": {kubetest.Now.Add(48 * time.Hour), false, false},
		"2099":              {year(2099), false, false},
		"9999":              {year(9999), false, false},
	} {
		at := metav1.NewTime(c.at)
		s := kubetest.Service("cart")
		s.Status.Takeovers = &v1alpha1.TakeoverStatus{Manager: "helm", Count: 5, LastTime: at}
		s.Status.Recommendation = &v1alpha1.RecommendationStatus{AppliedTime: &at}
		share := kubetest.NodeShare("n1", "l", "batch", "", 2, false, 0)
		share.Spec.Rest = &v1alpha1.ShareRest{TurnedBack: 3, Until: at}
		share.Status.Evictions = []v1alpha1.AgentEviction{{Owner: "job", Time: at}}
		w := newWorld(t, kubetest.Pool("web", "Online", kubetest.InWeb), kubetest.Pool("batch", "Offline",
			kubetest.InBatch), kubetest.Node("n1", kubetest.InWeb), kubetest.Deployment("cart", 3), s, share)
		got := w.snapshot(t)
		svc, n := got.Service("shop/cart"), &got.Nodes[0]
		if believed := !svc.Takeovers.Last.IsZero(); believed != c.past {
			t.Errorf("%s: the last takeover is believed: %v", name, believed)
		}
		if svc.Resized.OK != c.past {
			t.Errorf("%s: the last resize is believed: %v", name, svc.Resized.OK)
		}
		if believed := len(n.Share.Evicted) == 1; believed != c.past {
			t.Errorf("%s: the agent's eviction is believed: %v", name, believed)
		}
		if believed := !n.Share.Rest.Until.IsZero(); believed != c.rest {
			t.Errorf("%s: the rest is believed: %v", name, believed)
		}
		events := record.NewFakeRecorder(100)
		w.Events = declared{events, t}
		w.ReportDated()
		first := len(events.Events)
		w.ReportDated()
		want := 0
		if !c.past {
			want += 3
		}
		if !c.rest {
			want++
		}
		if first != want || len(events.Events) != want {
			t.Errorf("%s: %d events, then %d, want %d", name, first, len(events.Events), want)
		}
		for range want {
			if e := <-events.Events; !strings.Contains(e, "NotBelieved") || !strings.Contains(e, c.at.Format("2006")) {
				t.Errorf("%s: %q", name, e)
			}
		}
	}
}
