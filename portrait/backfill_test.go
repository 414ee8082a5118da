package portrait

import (
	"fmt"
	"testing"
	"time"

	"github.com/springtide/springtide/series"
)

// A history that is read at night, by few replicas, shows days that many served: a step is judged by the replicas that
// were ready then, else a controller that was away, or that is new, drops whole days as faults.
func TestAHistoryIsJudgedByItsOwnReplicas(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]Signal{"requests": Requests, "CPU": CPU} {
		for _, lent := range []time.Duration{2 * time.Hour, 8 * time.Hour} {
			t.Run(fmt.Sprintf("%s, a crowd of %s", name, lent), func(t *testing.T) {
				t.Parallel()
				b := crowdOfTheTenthDay(6, 6, lent)
				begin := b.Load.Start.Add(heldDays*day + 10*time.Hour)
				b.PodsReady, b.CoresMost = 4, 8 // of now: it is night
				if signal == CPU {
					b.Load = series.Series{}
				}
				p := Fold(Portrait{}, b, Options{})
				if p.Signal != signal {
					t.Fatalf("signal %s", p.Signal)
				}
				if p.Doubt.Quarantined() || p.Quality.Outliers > 6 {
					t.Errorf("the crowd is in doubt: %+v, %d steps dropped as faults", p.Doubt, p.Quality.Outliers)
				}
				if at := p.PeakAt; at.Before(begin) || at.After(begin.Add(lent)) {
					t.Errorf("the largest load is that of %s, and the crowd came at %s", at, begin)
				}
			})
		}
	}
}

// The replicas of a lie are in its history too: while it is young it is judged by those that the API counts, and later by a few times as many at most.
func TestALieAboutReplicasConfirmsNothing(t *testing.T) {
	t.Parallel()
	for _, pods := range []float64{1, 100} {
		b := crowdOfTheTenthDay(100, pods, 12*time.Hour)
		begin := b.Load.Start.Add(heldDays*day + 10*time.Hour)
		b.PodsReady, b.CoresMost = 10, 20
		p := Fold(Portrait{}, upTo(b, begin), Options{})
		for _, after := range []time.Duration{40 * time.Minute, 3 * time.Hour, 8 * time.Hour} {
			q := upTo(b, begin.Add(after))
			if got := Fold(p, q, Options{}); !got.Doubt.Quarantined() || !got.Doubt.Rise {
				t.Errorf("x100, replicas x%g, after %s: learned (%+v)", pods, after, got.Doubt)
			}
		}
	}
}

// crowdOfTheTenthDay is a history of ten replicas with a crowd that begins at ten of the tenth day, is so many times as large, and is served by so many
// times as many replicas. It ends a day and a half later.
func crowdOfTheTenthDay(times, pods float64, lasts time.Duration) Batch {
	b := Batch{Load: load(3, defaultStep, (heldDays+2)*int(day/defaultStep))}
	n := b.Load.Len()
	b.CPU, b.Ready = series.New(b.Load.Start, defaultStep, n), series.New(b.Load.Start, defaultStep, n)
	begin := b.Load.Start.Add(heldDays*day + 10*time.Hour)
	for i := range n {
		b.Ready.Values[i] = 10
		if at := b.Load.Time(i); !at.Before(begin) && at.Before(begin.Add(lasts)) {
			b.Load.Values[i] *= times
			b.Ready.Values[i] = 10 * pods
		}
		b.CPU.Values[i] = 0.01*b.Load.Values[i] + 0.01*b.Ready.Values[i]
	}
	return b
}
