package reason

import (
	"regexp"
	"strings"
	"testing"
)

// Each code of the table is one word in CamelCase with words and a meaning, and shows itself where it is misused.
func TestTable(t *testing.T) {
	camel := regexp.MustCompile(`^([A-Z][a-z]+|[A-Z])+$`)
	said := map[string]Code{}
	for _, c := range Codes() {
		e := table[c]
		if !camel.MatchString(string(c)) || e.words == "" || c.Means() == "" || strings.HasSuffix(e.words, ".") {
			t.Errorf("%s: %+v", c, e)
		}
		if was, twice := said[e.words]; twice {
			t.Errorf("%s and %s have the same words", was, c)
		}
		said[e.words] = c
	}
	if len(said) < 30 {
		t.Errorf("%d codes", len(said))
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		reason Reason
		want   string
	}{
		{Reason{}, ""},
		{Of(StaleMetrics), "stale metrics"},
		{Of(Frozen, "network change"), "freeze: network change"},
		{Of(Frozen, "100%s of it"), "freeze: 100%s of it"},
		{Of(RecallBudget, 3), "move budget: 3 recalls a minute while there is time"},
		{Of(Contested, "argocd", "spec.replicas", "Deployment shop/cart", int32(4)), "argocd writes spec.replicas of Deployment shop/cart, and it was taken back 4 times within an hour"},
		{Of(Frozen), "Frozen"},
		{Of(StaleMetrics, "x"), "StaleMetrics x"},
		{Of("Unheard", 1, "a"), "Unheard 1 a"},
	} {
		if got := c.reason.Text(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.reason, got, c.want)
		}
	}
	if !(Reason{}).None() || Of(Quota).None() || Of(Frozen, "a").Equal(Of(Frozen, "b")) || !Of(Frozen, "a").Equal(Of(Frozen, "a")) {
		t.Error("two reasons are compared whole")
	}
}
