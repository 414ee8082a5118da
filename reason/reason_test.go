package reason

import (
	"regexp"
	"slices"
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
		if was, twice := said[e.words]; twice && e.words != "%s" && !onlyParts(e.words) {
			t.Errorf("%s and %s have the same words", was, c)
		}
		said[e.words] = c
		args, parts, _ := count(e.words)
		full := Reason{Code: c, Args: slices.Repeat([]string{"x"}, args), Parts: slices.Repeat([]Reason{Said("y")}, parts)}
		if got := full.Text(); got == "" && args+parts > 0 || strings.ContainsAny(got, "{}") || strings.Contains(got, "%s") || strings.HasPrefix(got, string(c)+" ") {
			t.Errorf("%s with all that its words take: %q", c, got)
		}
		if w := c.Words(); w == "" || strings.ContainsAny(w, "{}") || strings.Contains(w, "%s") {
			t.Errorf("%s: words %q", c, w)
		}
	}
	if len(said) < 30 {
		t.Errorf("%d codes", len(said))
	}
}

// onlyParts says that the words of a code are those of its parts: it is the class, and its part says what happened.
func onlyParts(words string) bool {
	return strings.HasPrefix(words, "{") && strings.HasSuffix(words, "}")
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
		{Of(PoolGone, "web", Of(MachinesGoHome)), "CapacityPool web is gone: its machines go home"},
		{Of(PoolGone, "web", Reason{}), "CapacityPool web is gone"},
		{Of(PoolGone, "web"), "PoolGone web"},
		{Of(GangShort, Of(MembersRun, 1, 2, "a{}%s"), Of(MemberUnbound, "b")), "1 of 2 a{}%s run, its b waits for a machine"},
		{Of(GangShort), ""},
		{Of(SizeKept, 3, Said("a"), Reason{}, Said("b"), Said("c"), Said("d")), "3 kept: a; b; c; d"},
		{Of(SizeKept, 3, Said("a"), Reason{}, Reason{}), "3 kept: a"},
		{Said(""), ""},
		{Said("as it was"), "as it was"},
		{Of(Frozen), "Frozen"},
		{Of(StaleMetrics, "x"), "StaleMetrics x"},
		{Of("Unheard", 1, "a"), "Unheard 1 a"},
	} {
		if got := c.reason.Text(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.reason, got, c.want)
		}
	}
	if !(Reason{}).None() || Of(Quota).None() || Of(Frozen, "a").Equal(Of(Frozen, "b")) || !Of(Frozen, "a").Equal(Of(Frozen, "a")) ||
		Of(Flood, Of(Frozen, "a"), Reason{}).Equal(Of(Flood, Of(Frozen, "b"), Reason{})) {
		t.Error("two reasons are compared whole")
	}
}
