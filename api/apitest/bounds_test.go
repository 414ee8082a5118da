package apitest

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/forecast/calendar"
)

type props = apiextensionsv1.JSONSchemaProps

func schemaOf(t *testing.T, plural string) *props {
	t.Helper()
	text, err := crd.Files.ReadFile("springtide.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// TestEverythingIsBounded: one object can never be larger than its definition says, no matter which client writes it.
func TestEverythingIsBounded(t *testing.T) {
	for _, plural := range []string{"elasticservices", "capacitypools", "capacityquotas", "loans", "nodeshares", "elasticjobs", "festivalplans"} {
		root := schemaOf(t, plural)
		for _, part := range []string{"spec", "status"} {
			p := root.Properties[part]
			bounded(t, plural+"."+part, &p)
		}
	}
}

func bounded(t *testing.T, path string, p *props) {
	switch {
	case p.XIntOrString:
		if p.MaxLength == nil {
			t.Errorf("%s: no maxLength", path)
		}
	case p.Type == "string":
		if p.MaxLength == nil && len(p.Enum) == 0 && p.Format != "date-time" {
			t.Errorf("%s: no maxLength", path)
		}
	case p.Type == "integer":
		// A counter's type bounds it from above; none of ours may be negative.
		if p.Minimum == nil {
			t.Errorf("%s: no minimum", path)
		}
		// Fields of a spec take part in arithmetic, and so does an epoch.
		if p.Maximum == nil && (strings.Contains(path, ".spec") || strings.HasSuffix(path, "poch")) {
			t.Errorf("%s: no maximum", path)
		}
	case p.Type == "array":
		if p.MaxItems == nil {
			t.Errorf("%s: no maxItems", path)
		}
		if p.XListType == nil {
			t.Errorf("%s: no list type", path)
		}
		bounded(t, path+"[]", p.Items.Schema)
	case p.Type == "object" && p.AdditionalProperties != nil:
		// Only a rule can judge the lengths of keys and values, which TestBadFilesFail shows.
		if p.MaxProperties == nil || len(p.XValidations) == 0 {
			t.Errorf("%s: a map without maxProperties, or without a rule that bounds keys and values", path)
		}
	}
	for name, child := range p.Properties {
		bounded(t, path+"."+name, &child)
	}
}

// TestConstantsAreThoseOfTheMarkers: code that makes objects in memory, or clips what it writes, knows the same numbers as the API server.
func TestConstantsAreThoseOfTheMarkers(t *testing.T) {
	at := func(plural, path string) *props {
		p := schemaOf(t, plural)
		for step := range strings.SplitSeq(path, ".") {
			next := p.Properties[step]
			if step == "[]" {
				next = *p.Items.Schema
			}
			p = &next
		}
		return p
	}
	defaults := []struct {
		plural, path string
		want         any
	}{
		{"elasticservices", "spec.mode", v1alpha1.DefaultMode},
		{"elasticservices", "spec.pause.scope", v1alpha1.DefaultPauseScope},
		{"elasticservices", "spec.actuation", v1alpha1.DefaultActuation},
		{"elasticservices", "spec.requestsMode", v1alpha1.DefaultRequestsMode},
		{"elasticservices", "spec.slo.objective.goodMinutes", v1alpha1.DefaultGoodMinutes},
		{"elasticservices", "spec.slo.objective.over", v1alpha1.DefaultOver},
		{"elasticservices", "spec.slo.latency.[].source.histogram.unit", v1alpha1.DefaultHistogramUnit},
		{"capacitypools", "spec.mode", v1alpha1.DefaultMode},
		{"capacitypools", "spec.lendableUnit", v1alpha1.DefaultLendableUnit},
		{"capacitypools", "spec.whenFull", v1alpha1.DefaultWhenFull},
		{"capacitypools", "spec.lowWatermarkPercent", v1alpha1.DefaultLowWatermarkPercent},
		{"capacitypools", "spec.highWatermarkPercent", v1alpha1.DefaultHighWatermarkPercent},
		{"capacitypools", "spec.noticeSeconds", v1alpha1.DefaultNoticeSeconds},
		{"capacitypools", "spec.noticeMaxSeconds", v1alpha1.DefaultNoticeMaxSeconds},
		{"elasticjobs", "spec.hosts.cooldownSeconds", v1alpha1.DefaultHostCooldownSeconds},
		{"capacitypools", "spec.minimumTermSeconds", v1alpha1.DefaultMinimumTermSeconds},
		{"capacitypools", "spec.moves.atOnce", v1alpha1.DefaultMovesAtOnce},
		{"capacitypools", "spec.moves.perHour", v1alpha1.DefaultMovesPerHour},
		{"capacitypools", "spec.disruptions.evictionsPerMinute", v1alpha1.DefaultEvictionsPerMinute},
		{"capacitypools", "spec.disruptions.servicePercent", v1alpha1.DefaultServicePercent},
		{"capacitypools", "spec.disruptions.fleetPercent", v1alpha1.DefaultFleetPercent},
		{"capacityquotas", "spec.highestJobPriority", v1alpha1.DefaultHighestJobPriority},
		{"capacityquotas", "spec.drainSeconds", v1alpha1.DefaultDrainSeconds},
		{"elasticjobs", "spec.priority", v1alpha1.DefaultJobPriority},
	}
	for _, d := range defaults {
		text, err := yaml.Marshal(d.want)
		if err != nil {
			t.Fatal(err)
		}
		got := at(d.plural, d.path).Default
		if got == nil || strings.Trim(string(got.Raw), `"`) != strings.TrimSpace(string(text)) {
			t.Errorf("%s %s: the marker says %s, the constant %s", d.plural, d.path, got, text)
		}
	}
	bounds := []struct {
		plural, path string
		want         int64
	}{
		{"elasticservices", "status.reason", v1alpha1.MaxReasonLength},
		{"elasticservices", "status.portrait.note", v1alpha1.MaxNoteLength},
		{"elasticservices", "status.portrait.lastError", v1alpha1.MaxNoteLength},
		{"elasticservices", "status.recommendation.note", v1alpha1.MaxNoteLength},
		{"elasticservices", "status.summary.verdict", v1alpha1.MaxNoteLength},
		{"elasticservices", "status.tide.days", v1alpha1.MaxLiftedDays},
		{"elasticservices", "status.tide.days.[].name", v1alpha1.MaxDayName},
		{"elasticservices", "status.conditions", v1alpha1.MaxConditions},
		{"elasticservices", "status.conditions.[].message", v1alpha1.MaxConditionMessage},
		{"elasticjobs", "status.reason", v1alpha1.MaxReasonLength},
		{"elasticjobs", "status.hosts.leftOut", v1alpha1.MaxLeftOut},
		{"loans", "status.reason", v1alpha1.MaxReasonLength},
		{"loans", "status.history", v1alpha1.MaxLoanHistory},
		{"loans", "spec.cells", v1alpha1.MaxCells},
		{"capacitypools", "status.pinned", v1alpha1.MaxPinnedNodes},
		{"capacityquotas", "status.reason", v1alpha1.MaxReasonLength},
		{"capacityquotas", "status.parcels", v1alpha1.MaxParcelShares},
		{"capacityquotas", "status.notices.[].parcels", v1alpha1.MaxParcelShares},
		{"capacitypools", "status.pinned.[].by", v1alpha1.MaxNoteLength},
		{"nodeshares", "spec.parcels", v1alpha1.MaxShareParcels},
		{"nodeshares", "status.parcels", v1alpha1.MaxShareParcels},
		{"nodeshares", "status.parcels.[].occupants", v1alpha1.MaxOccupants},
		{"nodeshares", "status.parcels.[].occupants.[]", v1alpha1.MaxOccupantLength},
	}
	for _, b := range bounds {
		p := at(b.plural, b.path)
		got := p.MaxLength
		if p.Type == "array" {
			got = p.MaxItems
		}
		if got == nil || *got != b.want {
			t.Errorf("%s %s: the marker says %v, the constant %d", b.plural, b.path, got, b.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"tide", 4, "tide"}, {"tides", 4, "tid…"}, {"潮起潮落", 4, "潮起潮落"}, {"潮起潮落了", 4, "潮起潮…"}, {"x", 0, ""}, {"", 0, ""},
	} {
		if got := v1alpha1.Clip(c.in, c.n); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
	if got := v1alpha1.KeepNewest([]int{1, 2, 3}, 2); len(got) != 2 || got[0] != 2 {
		t.Errorf("KeepNewest = %v, want [2 3]", got)
	}
}

// TestRegionsAreThoseThatAreKnown: what the definition takes is what the calendar knows days of.
func TestRegionsAreThoseThatAreKnown(t *testing.T) {
	spec := schemaOf(t, "elasticservices").Properties["spec"]
	regions := spec.Properties["calendar"].Properties["regions"]
	var got []string
	for _, e := range regions.Items.Schema.Enum {
		got = append(got, strings.Trim(string(e.Raw), `"`))
	}
	if !slices.Equal(got, calendar.Regions()) {
		t.Errorf("regions %v, and days are known of %v", got, calendar.Regions())
	}
}
