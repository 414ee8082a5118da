package scrape

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/lab/model"
	"github.com/springtide/springtide/lab/prom"
)

// stateEvery is how often kube-state-metrics is read at least; usage and requests may be read oftener.
const stateEvery = 30 * time.Second

// cadvisorLag is the most by which a time that cAdvisor sends lies before the scrape: it looks at containers every ten seconds, each at a
// moment of its own.
const cadvisorLag = 10 * time.Second

// Options say how the exporters are scraped. The zero value is a Prometheus that loses nothing, every 15 s.
type Options struct {
	// Interval is that of all jobs, in whole steps of 15 s.
	Interval time.Duration
	// Loss is the part of the scrapes that fails. Each target draws by itself: a kubelet, a pod, kube-state-metrics.
	Loss float64
	// OwnTimes lets cAdvisor send times of its own, as a real one does: they differ by container and lie up to ten seconds back, and the series
	// of a container that ended stays for five minutes, since nothing marks it as stale.
	OwnTimes bool
	Seed     uint64
}

// Scraper scrapes one exporter into one database.
type Scraper struct {
	o        Options
	exporter *model.Exporter
	prom     *prom.Prom
	series   []*prom.Series // by handle
	stamped  []bool         // whether a handle is cAdvisor's
	values   []prom.Stamped // of one scrape, kept for its room
	stale    []*prom.Series
}

// New returns a scraper that has scraped nothing yet.
func New(e *model.Exporter, p *prom.Prom, o Options) *Scraper {
	if o.Interval == 0 {
		o.Interval = 15 * time.Second
	}
	return &Scraper{o: o, exporter: e, prom: p}
}

// Step scrapes what is due at now, and ends the series of what is gone. It returns the number of samples.
func (s *Scraper) Step(now time.Time) (int, error) {
	for _, f := range s.exporter.Fresh() {
		if int(f.Handle) != len(s.series) {
			return 0, fmt.Errorf("scrape: series %d came out of order", f.Handle)
		}
		s.series = append(s.series, s.prom.Series(Labels(f.Labels)))
		s.stamped = append(s.stamped, s.o.OwnTimes && ofCadvisor(f.Labels))
	}
	s.values, s.stale = s.values[:0], s.stale[:0]
	if due(now, s.o.Interval) {
		s.exporter.UsageByPod(func(m *model.PodMeta, cores float64, cpu, memory model.Sample) {
			if s.lost("kubelet "+m.Node, now) {
				s.miss(cpu, memory)
				return
			}
			lag := s.lag(m.UID, now)
			cpu.Value = max(0, cpu.Value-cores*lag.Seconds()) // as it was then
			s.take(now.Add(-lag), cpu, memory)
		})
		s.exporter.HTTPByPod(func(m *model.PodMeta, samples []model.Sample) {
			if s.lost("pod "+m.UID, now) {
				s.miss(samples...)
				return
			}
			s.take(now, samples...)
		})
	}
	if due(now, max(s.o.Interval, stateEvery)) {
		if state := s.exporter.State(nil); s.lost("kube-state-metrics", now) {
			s.miss(state...)
		} else {
			s.take(now, state...)
		}
	}
	if err := s.prom.AppendStamped(s.values); err != nil {
		return 0, err
	}
	for _, h := range s.exporter.Gone() {
		if !s.stamped[h] {
			s.stale = append(s.stale, s.series[h])
		}
		s.series[h] = nil
	}
	return len(s.values), s.prom.End(now, s.stale...)
}

func due(now time.Time, every time.Duration) bool { return now.Truncate(every).Equal(now) }

// take appends the samples of a scrape.
func (s *Scraper) take(at time.Time, samples ...model.Sample) {
	for _, x := range samples {
		s.values = append(s.values, prom.Stamped{RefValue: prom.RefValue{Ref: s.series[x.Handle], Value: x.Value}, At: at})
	}
}

// miss marks the series of a target whose scrape failed as stale, as Prometheus does, but for those that bring their times.
func (s *Scraper) miss(samples ...model.Sample) {
	for _, x := range samples {
		if !s.stamped[x.Handle] {
			s.stale = append(s.stale, s.series[x.Handle])
		}
	}
}

// lost draws whether the scrape of a target fails.
func (s *Scraper) lost(target string, now time.Time) bool {
	return s.o.Loss > 0 && s.draw("loss", target, now) < s.o.Loss
}

// lag is how far before the scrape cAdvisor looked at a container.
func (s *Scraper) lag(uid string, now time.Time) time.Duration {
	if !s.o.OwnTimes {
		return 0
	}
	return time.Duration(s.draw("lag", uid, now) * float64(cadvisorLag)).Truncate(time.Millisecond)
}

// draw is a number in [0, 1) that the seed, a name and a time give.
func (s *Scraper) draw(what, name string, now time.Time) float64 {
	x := s.o.Seed ^ replay.Seed(what, name, now.Format(time.RFC3339))
	// The mix of splitmix64.
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

func ofCadvisor(ls []model.Label) bool {
	for _, l := range ls {
		if l.Name == "__name__" {
			return strings.HasPrefix(l.Value, "container_")
		}
	}
	return false
}

// Labels are the labels of an exported series as the database has them.
func Labels(ls []model.Label) labels.Labels {
	b := labels.NewScratchBuilder(len(ls))
	for _, l := range ls {
		b.Add(l.Name, l.Value)
	}
	b.Sort()
	return b.Labels()
}
