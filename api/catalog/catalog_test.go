package catalog

import (
	"regexp"
	"slices"
	"testing"
)

var camel = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// whole judges what each row must have.
func whole(t *testing.T, name string, r *row) {
	t.Helper()
	switch {
	case !camel.MatchString(r.reason):
		t.Errorf("%s: the reason %q is not in CamelCase", name, r.reason)
	case r.words == "":
		t.Errorf("%s %s has no words", name, r.reason)
	case r.ByTheCase() && r.means == "":
		t.Errorf("%s %s: its words are made of the case, and nothing says when it is given", name, r.reason)
	}
}

func TestEveryVerdictIsWhole(t *testing.T) {
	type key struct{ object, kind, reason, status, words string }
	seen := map[key]bool{}
	for _, v := range verdicts {
		if v.OfRefusals() {
			continue
		}
		name := string(v.object) + " " + v.kind
		whole(t, name, &v.row)
		if v.object != Share && Meaning(v.object, v.kind) == "" {
			t.Errorf("the condition %s has no meaning", name)
		}
		k := key{string(v.object), v.kind, v.reason, string(v.status), v.words}
		if seen[k] {
			t.Errorf("%s %s is declared twice", name, v.reason)
		}
		seen[k] = true
	}
	for kind := range types {
		if !slices.ContainsFunc(verdicts, func(v *Verdict) bool { return v.kind == kind }) {
			t.Errorf("no object has the condition %s", kind)
		}
	}
	for object, list := range typesOf {
		for kind := range list {
			if !slices.ContainsFunc(verdicts, func(v *Verdict) bool { return v.object == object && v.kind == kind }) {
				t.Errorf("no %s has the condition %s", object, kind)
			}
		}
	}
}

func TestEveryRefusalIsWhole(t *testing.T) {
	for _, r := range refusals {
		whole(t, "refusal", &r.row)
		for _, object := range r.objects {
			if !slices.ContainsFunc(verdicts, func(v *Verdict) bool { return v.object == object && v.OfRefusals() }) {
				t.Errorf("%s: no condition of %s shows refusals", r.reason, object)
			}
		}
		if len(r.objects) == 0 {
			t.Errorf("%s is of no kind of object", r.reason)
		}
	}
}

func TestEveryEventIsWhole(t *testing.T) {
	seen := map[string]string{}
	for _, e := range events {
		whole(t, "event", &e.row)
		if e.means == "" || len(e.objects) == 0 {
			t.Errorf("%s says not what happened, or on which kind of object", e.reason)
		}
		for _, object := range e.objects {
			k := string(object) + " " + e.reason
			if was, ok := seen[k]; ok && was != e.kind {
				t.Errorf("%s is %s and %s", k, was, e.kind)
			}
			seen[k] = e.kind
		}
	}
	for _, l := range lacks {
		whole(t, "capability", &l.row)
	}
}

func TestWords(t *testing.T) {
	for words, want := range map[string]struct {
		shown string
		takes int
	}{
		"nothing":                       {"nothing", 0},
		"%d of %s%s":                    {"… of …", 3},
		"%.1f %% of %q: %v":             {"… % of …: …", 3},
		"%s":                            {"…", 1},
		"100 %% of it, and %-3d%% more": {"100 % of it, and …% more", 1},
	} {
		r := row{words: words}
		if got := r.Words(); got != want.shown || r.Takes() != want.takes {
			t.Errorf("%q: %q with %d values, want %q with %d", words, got, r.Takes(), want.shown, want.takes)
		}
	}
	if got := EventGivenBack.Text(3, 1, "home"); got != "minReplicas 3 -> 1: home" {
		t.Error(got)
	}
	if p := NodeContested.Of("n1", "web"); p.Reason != "NodeContested" || p.Message != NodeContested.Text("n1", "web") {
		t.Errorf("%+v", p)
	}
}

// A reason that another package gave and the table lacks is shown as it is.
func TestGiven(t *testing.T) {
	if v := ServiceDataCause("NoValue"); v != causes[2] {
		t.Errorf("%+v", v)
	}
	v := ServiceDataCause("Unheard")
	if v.Reason() != "Unheard" || v.Type() != ConditionDataFresh || v.Status() != no || causes[0].reason == "Unheard" {
		t.Errorf("%+v", v)
	}
	for kind, want := range map[string][2]bool{"Fence": {false, true}, "Lend": {true, false}, "Forget": {false, false}} {
		if got := [2]bool{LoanMoved(kind) != nil, LoanLost(kind) != nil}; got != want {
			t.Errorf("%s: ordinary and loud %v, want %v", kind, got, want)
		}
	}
}
