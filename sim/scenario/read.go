package scenario

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/springtide/springtide/api/config"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate/lines"
)

// defaults are what a file need not say.
func defaults() Scenario {
	seconds := func(n int32) config.Duration { return config.Duration(time.Duration(n) * time.Second) }
	return Scenario{
		Seed: 1, Days: 7, History: config.Duration(21 * 24 * time.Hour), Tick: config.Duration(time.Minute), Jitter: 0.03, DemandShare: 1, Faults: Faults{Quiet: config.Duration(2 * time.Hour)},
		Fleet: Fleet{CoresPerNode: 64, Sockets: 2, Zones: 3, StaticShare: 1, Lending: Lending{
			Unit: v1alpha1.DefaultLendableUnit, LowPercent: float64(v1alpha1.DefaultLowWatermarkPercent), HighPercent: float64(v1alpha1.DefaultHighWatermarkPercent),
			Notice: seconds(v1alpha1.DefaultNoticeSeconds), NoticeMax: seconds(v1alpha1.DefaultNoticeMaxSeconds),
			MinimumTerm: seconds(v1alpha1.DefaultMinimumTermSeconds), MovesAtOnce: int(v1alpha1.DefaultMovesAtOnce), MovesPerHour: int(v1alpha1.DefaultMovesPerHour),
		}},
		Defaults: Service{Namespace: "online", Weight: 1, Cores: 8, Burst: 2, StartUp: config.Duration(3 * time.Minute),
			SLO: SLO{Utilisation: 0.85}, Min: 2, ForecastPercent: defaultPercent()},
	}
}

// usualJobs are the three kinds of offline work that a file without jobs has: training, batches that divide, transcoding.
func usualJobs() []Job {
	d := func(v time.Duration) config.Duration { return config.Duration(v) }
	return []Job{
		{Name: "train", Namespace: "research", Cores: 16, Priority: "High", Share: 0.2, Every: d(15 * time.Minute), Save: d(45 * time.Second), Restore: d(time.Minute)},
		{Name: "spark", Namespace: "research", Cores: 16, Priority: "Low", Share: 0.5, Every: d(10 * time.Minute), Save: d(30 * time.Second), Restore: d(30 * time.Second)},
		{Name: "transcode", Namespace: "media", Cores: 8, Priority: "Low", Share: 0.3, Every: d(2 * time.Minute), Save: d(20 * time.Second), Restore: d(10 * time.Second)},
	}
}

// Load reads a scenario file.
func Load(path string) (*Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	return Parse(path, text)
}

// Parse is Load of a text; the paths of traces begin where path lies.
func Parse(path string, text []byte) (*Scenario, error) {
	s := defaults()
	s.dir, s.read = filepath.Dir(path), map[string][]trace{}
	file := lines.File{Name: path, Types: types}
	root, err := file.Read(text, &s)
	if err != nil {
		return nil, err
	}
	if err := s.fill(root); err != nil {
		return nil, err
	}
	var wrong []error
	for _, p := range s.check() {
		wrong = append(wrong, file.At(root, p.Field, p.String()))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return &s, nil
}

// fill gives every service what the defaults say and it does not: it is read once more, over them, so that what it says holds even where that is 0.
func (s *Scenario) fill(root *yamlv3.Node) error {
	if len(s.Jobs) == 0 {
		s.Jobs = usualJobs()
	}
	for i := range s.Services {
		v := s.Defaults
		v.SLO = SLO{} // a promise is taken over as a whole, or not at all
		if _, written := lines.Find(root.Content[0], fmt.Sprintf("services[%d]", i)); written != nil {
			if err := written.Decode(&v); err != nil {
				return err
			}
		}
		if !v.SLO.stated() {
			v.SLO = s.Defaults.SLO
		}
		v.SLO.fill()
		s.Services[i] = v
	}
	for i := range s.Jobs {
		if s.Jobs[i].Namespace == "" {
			s.Jobs[i].Namespace = "offline"
		}
	}
	return nil
}

// defaultOver is the window of an objective that names none.
const defaultOver = 28 * 24 * time.Hour

// stated reports whether anything is promised.
func (l *SLO) stated() bool { return !reflect.ValueOf(l).Elem().IsZero() }

// fill gives a promise what it need not say.
func (l *SLO) fill() {
	if l.Latency > 0 && l.Quantile == 0 {
		l.Quantile = 0.99
	}
	if l.Objective.GoodMinutes > 0 && l.Objective.Over == 0 {
		l.Objective.Over = config.Duration(defaultOver)
	}
}

// types are those of the fields of a file.
var types = []reflect.Type{reflect.TypeFor[Scenario](), reflect.TypeFor[Fleet](), reflect.TypeFor[Lending](), reflect.TypeFor[Service](),
	reflect.TypeFor[SLO](), reflect.TypeFor[Latency](), reflect.TypeFor[Objective](), reflect.TypeFor[Curve](),
	reflect.TypeFor[Pauses](), reflect.TypeFor[Cold](),
	reflect.TypeFor[Dependency](), reflect.TypeFor[Slow](), reflect.TypeFor[Release](), reflect.TypeFor[Job](),
	reflect.TypeFor[Tenant](), reflect.TypeFor[Window](), reflect.TypeFor[ServiceWindow](), reflect.TypeFor[Slice](),
	reflect.TypeFor[Burst](), reflect.TypeFor[Festival](), reflect.TypeFor[Lift](), reflect.TypeFor[Surge](),
	reflect.TypeFor[Faults](), reflect.TypeFor[Fault]()}

// defaultPercent is the quantile that services are sized by where nothing is stated, in percent.
func defaultPercent() float64 {
	q, err := v1alpha1.DefaultQuantile.Number()
	if err != nil {
		panic(err) // a constant
	}
	return 100 * q
}
