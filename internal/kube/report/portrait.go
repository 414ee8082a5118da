package report

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/internal/kube/convert"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// portraitStatus shows what was learned. The last failure to read the history stays until the next: what it cost is
// seen later.
func (v *serviceView) portraitStatus(p *portrait.Portrait, was *v1alpha1.PortraitStatus) *v1alpha1.PortraitStatus {
	q := &p.Quality
	s := &v1alpha1.PortraitStatus{Signal: string(p.Signal), QualityPercent: percent(min(q.Score, 1)),
		Points: int32(q.Points), PointsNeeded: int32(q.Needed), Gaps: int32(q.Gaps), ReadyTime: convert.Stamp(q.ReadyAt),
		Class: string(p.Shape.Class), Periods: periods(p), NoisePercent: percent(p.Noise), Accuracy: accuracyStatus(p), Cost: costText(p),
		Note: v1alpha1.Clip(q.Note, v1alpha1.MaxNoteLength)}
	// The middle one of the three quantiles: a start-up that one in ten exceeds is what pre-scaling must allow for.
	s.StartupSeconds = wholeSeconds(p.StartUp[1])
	s.StartupImagePresentSeconds, s.StartupImageAbsentSeconds = wholeSeconds(p.Present.Quantiles[1]), wholeSeconds(p.Absent.Quantiles[1])
	if was != nil {
		s.LastError = was.LastError
	}
	if err := v.r.HistoryErr; err != nil && !errors.Is(err, loop.ErrNotRead) {
		s.LastError = v1alpha1.Clip(v.w.now.Format(time.RFC3339)+": "+catalog.ServiceDataSourceDown.Text(),
			v1alpha1.MaxNoteLength)
	}
	return s
}

func percent(share float64) int32 { return int32(math.Round(100 * min(max(share, 0), 100))) }

// accuracyStatus sets what the forecasts promised next to what came.
func accuracyStatus(p *portrait.Portrait) []v1alpha1.ForecastAccuracy {
	var out []v1alpha1.ForecastAccuracy
	for _, a := range forecast.Accuracies(p) {
		out = append(out, v1alpha1.ForecastAccuracy{HorizonSeconds: wholeSeconds(a.Horizon), Judged: int32(min(a.Judged, math.MaxInt32)), MissPercent: percent(a.Miss),
			Coverage: v1alpha1.ForecastCoverage{NominalPercent: percent(a.Nominal), AchievedPercent: percent(min(a.Achieved, 1))}})
	}
	return out
}

// skill says whether the forecasts are still as good as they were.
func (v *serviceView) skill(c *conditions) {
	p, ok := v.r.Portraits[v.svc.ID]
	switch {
	case !ok || len(forecast.Accuracies(&p)) == 0:
		c.set(catalog.ServiceSkillNotJudged)
	case p.Record.Skill.Lost:
		c.set(catalog.ServiceSkillLost, p.Record.String())
	default:
		c.set(catalog.ServiceSkilled)
	}
}

func wholeSeconds(d time.Duration) int32 { return int32(math.Ceil(d.Seconds())) }

// periods are the seasons that were found.
func periods(p *portrait.Portrait) []string {
	var out []string
	for _, x := range p.Shape.Periods {
		out = append(out, Brief(x.Length))
	}
	return out
}

// costText is what one request a second costs, as in "4.02 ± 0.10 millicores a request per second, idle 199".
func costText(p *portrait.Portrait) string {
	if p.Signal != portrait.Requests || !p.CPUPerLoad.OK {
		return ""
	}
	text := fmt.Sprintf("%.3g", 1000*p.CPUPerLoad.Value)
	if e := p.CostError(); e.OK {
		text += fmt.Sprintf(" ± %.2g", 1000*e.Value)
	}
	text += " millicores a request per second"
	if p.CPUIdle.OK {
		text += ", idle " + idleText(1000*p.CPUIdle.Value)
	}
	return text
}

// idleText prints millicores. A fit that finds nothing leaves a remainder of arithmetic, which is no measurement.
func idleText(millicores float64) string {
	if math.Abs(millicores) < 0.01 {
		return "0"
	}
	return fmt.Sprintf("%.3g", millicores)
}

// sampleless reports whether nothing of the service's history was read yet, so that there is nothing to forecast from.
func (v *serviceView) sampleless() bool {
	p, ok := v.r.Portraits[v.svc.ID]
	return ok && p.Quality.Points == 0
}

// young says how far a portrait is from carrying a forecast, and when it will; empty when it can, or is not known.
func (v *serviceView) young() string {
	p, ok := v.r.Portraits[v.svc.ID]
	q := &p.Quality
	switch {
	case !ok || q.Needed > 0 && q.Points >= q.Needed:
		return ""
	case q.Needed == 0:
		return "no samples yet"
	}
	text := fmt.Sprintf("%d of %d points were seen, with %d gaps", q.Points, q.Needed, q.Gaps)
	if !q.ReadyAt.IsZero() {
		text += "; as they come, the rest will be there on " + q.ReadyAt.UTC().Format("2006-01-02 15:04 MST")
	}
	return text
}

// Brief renders a duration without the zeros that Go's form ends in: 24h0m0s is "24h".
func Brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
