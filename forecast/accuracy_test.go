package forecast

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/springtide/springtide/portrait"
)

func TestAccuracies(t *testing.T) {
	p := portrait.Portrait{Record: portrait.Record{Horizons: []portrait.Horizon{
		{Ahead: time.Hour, Judged: 7, Miss: 0.08, Covered: 0.93}, {Ahead: 24 * time.Hour}}}}
	want := []Accuracy{{Horizon: time.Hour, Judged: 7, Miss: 0.08, Nominal: 0.9, Achieved: 0.93}}
	if d := cmp.Diff(want, Accuracies(&p)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A tide of lost skill is not trusted, and says so with figures; nothing else of it changes.
func TestLostSkillIsNotTrusted(t *testing.T) {
	s := tides(1, 5*time.Minute, 9*288)
	p := fold(s)
	before := Project(p, s.End(), Options{})
	p.Record.Skill = portrait.Skill{Lost: true, Since: s.End()}
	after := Project(p, s.End(), Options{})
	if !before.Trusted || before.SkillLost || after.Trusted || !after.SkillLost || !strings.HasPrefix(after.Note, "forecast skill lost: of the newest forecasts") {
		t.Errorf("trusted %v, then %v; lost %v, then %v: %q", before.Trusted, after.Trusted, before.SkillLost, after.SkillLost, after.Note)
	}
	after.Trusted, after.SkillLost, after.Note = before.Trusted, before.SkillLost, before.Note
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("(-before +after)\n%s", d)
	}
}
