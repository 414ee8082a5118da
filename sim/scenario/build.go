package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/measure"
	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/series"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
	// enoughHistory is what a service must have not to be young: two whole weeks, and a day for the edges.
	enoughHistory = 15 * day
	// mostNamed bounds what a note lists.
	mostNamed = 5
	// Headroom is what static provisioning adds to the peak of the last week.
	Headroom = 1.2
)

// Built is a scenario whose services have their loads and sizes.
type Built struct {
	*Scenario
	// Online is the number of machines at home in the online pool.
	Online int
	// Services are sorted by name.
	Services []Online
	// Notes say what was left out, and why.
	Notes []string
	// Charts has the rows that a page draws keep each service over time: some 24 MB for a thousand services and a week.
	Charts bool
}

// Online is one service to be played.
type Online struct {
	Spec *Service
	Name fleet.Name
	measure.Station
	// Load is the true load a minute, history and run: requests a second, which are cores where the SLO is a utilisation. A gap of the
	// history is NaN; from the start of the warm-up on there is none.
	Load series.Series
	// Static are the replicas of static provisioning.
	Static int
	// Calm, Young and Disaggregated say what the history is like: predictable by itself, short, or brought to minutes from coarser steps.
	Calm, Young, Disaggregated bool

	seed uint64
	// id is that of the trace, unlike says that the name does not show it.
	id     string
	unlike bool
	// shift is how much later than it was measured the load is played.
	shift time.Duration
	slow  []slow
}

// Cores are those of the whole fleet.
func (b *Built) Cores() float64 {
	return float64((b.Online + b.Fleet.OfflineNodes) * b.Fleet.CoresPerNode)
}

// ID is "namespace/name".
func (o *Online) ID() fleet.ServiceID { return fleet.ServiceID(o.Name.String()) }

// Draws is a stream of random numbers of the service's own.
func (o *Online) Draws(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(o.seed, stream+100)) }

// Request is what one replica asks for.
func (o *Online) Request() fleet.Resources { return request(o.Cores, o.Spec.MemoryPerCoreGiB) }

// Request is what one member asks for.
func (j *Job) Request() fleet.Resources { return request(j.Cores, j.MemoryPerCoreGiB) }

// request is some cores with their memory: in the machine's proportion where nothing is said, so that CPU is what binds.
func request(cores int, perCoreGiB float64) fleet.Resources {
	r := CoresOf(cores)
	if perCoreGiB > 0 {
		r.Memory = fleet.Bytes(float64(cores) * perCoreGiB * float64(fleet.GiB))
	}
	return r
}

// MemoryPerCore is what machines have with each core, and pods ask for where nothing else is said.
const MemoryPerCore = 4 * fleet.GiB

// CoresOf are whole cores with their memory.
func CoresOf(n int) fleet.Resources {
	return fleet.Resources{CPU: fleet.MilliCPU(1000 * n), Memory: MemoryPerCore * fleet.Bytes(n)}
}

// Build reads the traces and sizes services and fleet.
func (s *Scenario) Build() (*Built, error) {
	b := &Built{Scenario: s, Online: s.Fleet.Nodes}
	frame := replay.Frame{End: s.End(), Replay: s.Duration(), Pitch: wholeWeeks(time.Duration(s.History) + s.Duration()),
		Shortest: min(time.Duration(s.History), enoughHistory) + s.Duration()}
	for i := range s.Services {
		if err := b.make(frame, i); err != nil {
			return nil, fmt.Errorf("services[%d] %s: %w", i, s.Services[i].Name, err)
		}
	}
	slices.SortFunc(b.Services, func(x, y Online) int { return x.Name.Compare(y.Name) })
	for i := range b.Services {
		if o := &b.Services[i]; !(o.Capacity() > 0) {
			return nil, fmt.Errorf("%s: no number of replicas keeps its slo: write longer limits, or a shorter serviceTime "+
				"or dependency", o.ID())
		}
	}
	if err := b.distinct(); err != nil {
		return nil, err
	}
	if err := b.size(frame); err != nil {
		return nil, err
	}
	if err := b.checkNames(); err != nil {
		return nil, err
	}
	b.surge()
	b.noteMoved()
	return b, nil
}

func wholeWeeks(d time.Duration) time.Duration { return (d + week - 1) / week * week }

// make reads the trace of one entry and cuts its services out of it.
func (b *Built) make(f replay.Frame, entry int) error {
	spec := &b.Scenario.Services[entry]
	all, err := b.traces(b.path(spec.Trace))
	if err != nil {
		return err
	}
	names, unlike := namesOf(spec.Name, all)
	var named []string
	for i, t := range all {
		part, err := spec.part(t.series)
		if err != nil {
			return err
		}
		if unlike[i] {
			named = append(named, fmt.Sprintf("%s/%s is %q", spec.Namespace, names[i], t.id))
		}
		first := len(b.Services)
		err = b.cut(f, spec, names[i], part)
		for k := first; k < len(b.Services); k++ {
			b.Services[k].id, b.Services[k].unlike = t.id, unlike[i]
		}
		if err != nil {
			at := spec.Trace
			if t.id != "" {
				at += fmt.Sprintf(": id %q", t.id)
			}
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	if len(named) > 0 {
		b.Notes = append(b.Notes, fmt.Sprintf("%s has ids that no name can show: %s", spec.Trace, few(named, mostNamed)))
	}
	return nil
}

// part is what of a trace is used.
func (v *Service) part(s series.Series) (series.Series, error) {
	from, to := 0, s.Len()
	if !v.From.IsZero() {
		from = max(0, min(s.Len(), s.Index(v.From)))
	}
	if !v.To.IsZero() {
		to = max(0, min(s.Len(), s.Index(v.To)))
	}
	if from >= to {
		return s, fmt.Errorf("nothing of the trace lies between from and to: it reaches from %s to %s", s.Start.Format(time.RFC3339), s.End().Format(time.RFC3339))
	}
	out := series.Series{Start: s.Time(from), Step: s.Step, Values: s.Values[from:to:to]}
	if !v.Dated.IsZero() {
		out.Start = v.Dated
	}
	return out, nil
}

// cut makes services of the windows of a trace.
func (b *Built) cut(f replay.Frame, spec *Service, name string, part series.Series) error {
	windows := f.Cut([]series.Series{part})
	if len(windows) == 0 {
		return fmt.Errorf("%s of load are too short for a run of %s with some history: give more, or fewer days", part.End().Sub(part.Start), f.Replay)
	}
	found := len(windows)
	var flaws []string
	windows = slices.DeleteFunc(windows, func(w replay.Window) bool {
		flaw := f.Flaw(f.Newest(w.Raw, time.Duration(b.History)))
		if flaw != "" && !slices.Contains(flaws, flaw) {
			flaws = append(flaws, flaw)
		}
		return flaw != ""
	})
	if len(windows) == 0 {
		return fmt.Errorf("%s: give another stretch of the trace by from and to, or leave it out", unusable(found, flaws))
	}
	if found > len(windows) {
		b.Notes = append(b.Notes, fmt.Sprintf("%s: %d of %d windows are left out: %s", name, found-len(windows), found, strings.Join(flaws, ", or ")))
	}
	seed := replay.Seed(strconv.FormatUint(b.Seed, 10), name)
	if spec.Take > 0 && spec.Take < len(windows) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(windows), func(i, j int) { windows[i], windows[j] = windows[j], windows[i] })
		windows = windows[:spec.Take]
		slices.SortFunc(windows, func(x, y replay.Window) int { return cmp.Compare(x.Number, y.Number) })
	}
	for _, w := range windows {
		own := name
		if found > 1 {
			own = fmt.Sprintf("%s-%02d", name, w.Number)
		}
		b.Services = append(b.Services, b.service(f, spec, own, w))
	}
	return nil
}

// unusable says that no window is of use, and why.
func unusable(windows int, flaws []string) string {
	if windows == 1 {
		return "the load is of no use: " + flaws[0]
	}
	return fmt.Sprintf("none of %d windows is usable: %s", windows, strings.Join(flaws, ", or "))
}

// service makes one service of a window.
func (b *Built) service(f replay.Frame, spec *Service, name string, w replay.Window) Online {
	raw := f.Newest(w.Raw, time.Duration(b.History))
	o := Online{Spec: spec, Name: fleet.Name{Namespace: spec.Namespace, Name: name}, Young: w.Young, Disaggregated: raw.Step > time.Minute,
		seed: replay.Seed(strconv.FormatUint(b.Seed, 10), "service", name), shift: w.Shift}
	o.Load = replay.Minutes(raw, f.Split(raw), rand.New(rand.NewPCG(o.seed, 1)))
	o.Calm = replay.Calm(f.History(o.Load))
	o.hold(b.RunStart(), b.End())
	o.Become(spec)
	return o
}

// hold fills the gaps from a time on with what was last known, up to the end of the run: a trace of hours ends before a run that does not end
// on the hour.
func (o *Online) hold(from, to time.Time) {
	last := 0.0
	for i, v := range o.Load.Values {
		switch {
		case !math.IsNaN(v):
			last = v
		case !o.Load.Time(i).Before(from):
			o.Load.Values[i] = last
		}
	}
	for o.Load.End().Before(to) {
		o.Load.Values = append(o.Load.Values, last)
	}
}

// size divides the fleet among the services and scales their loads, or sizes the fleet by their loads.
func (b *Built) size(f replay.Frame) error {
	perNode := float64(b.Fleet.CoresPerNode)
	if b.Online == 0 {
		total := 0.0
		for i := range b.Services {
			o := &b.Services[i]
			o.scale(o.Spec.PeakCores / o.CPUSeconds / replay.Peak(f.LastWeek(o.Load)))
			o.Static = max(o.Spec.Min, int(math.Ceil(Headroom*o.Spec.PeakCores/o.CPUSeconds/o.Capacity()-1e-9)))
			total += float64(o.Static) * b.takes(o)
		}
		b.Online = int(math.Ceil(total/b.Fleet.StaticShare/perNode - 1e-9))
		return nil
	}
	cores, weights := float64(b.Online)*perNode*b.Fleet.StaticShare, 0.0
	for i := range b.Services {
		weights += b.Services[i].Spec.Weight
	}
	left := cores
	for i := range b.Services {
		o := &b.Services[i]
		o.Static = max(o.Spec.Min, int(cores*o.Spec.Weight/weights/b.takes(o)+1e-9))
		left -= float64(o.Static) * b.takes(o)
	}
	if left < -1e-6 { // thirds of a machine do not add up exactly
		return fmt.Errorf("fleet.nodes: %.0f cores are too few for the least replicas of %d services: %.0f are missing", cores, len(b.Services), -left)
	}
	for i := range b.Services {
		o := &b.Services[i]
		// A hair less than the bound, so that rounding cannot lift the ceiling.
		o.scale(float64(o.Static) * o.Capacity() / Headroom * (1 - 1e-9) / replay.Peak(f.LastWeek(o.Load)))
	}
	return nil
}

// PerMachine is how many replicas of a service a machine holds.
func (b *Built) PerMachine(o *Online) int {
	machine, replica := CoresOf(b.Fleet.CoresPerNode), o.Request()
	return int(min(int64(machine.CPU/replica.CPU), int64(machine.Memory/replica.Memory)))
}

// takes is how many of its machine's cores are gone with one replica: more than it requests where replicas do not fill a machine, or use up its
// memory first.
func (b *Built) takes(o *Online) float64 {
	return float64(b.Fleet.CoresPerNode) / float64(b.PerMachine(o))
}

func (o *Online) scale(by float64) {
	for i := range o.Load.Values {
		o.Load.Values[i] *= by
	}
}

// surge lets happen what the file says.
func (b *Built) surge() {
	for _, g := range b.Surges {
		for i := range b.Services {
			o := &b.Services[i]
			if g.Service != "" && g.Service != string(o.ID()) {
				continue
			}
			for k := max(0, o.Load.Index(g.Start)); k < o.Load.Len() && o.Load.Time(k).Before(g.End); k++ {
				o.Load.Values[k] *= g.Factor
			}
		}
	}
}

// checkNames refuses festivals and surges of services that there are not.
func (b *Built) checkNames() error {
	known := func(id string) bool {
		return slices.ContainsFunc(b.Services, func(o Online) bool { return string(o.ID()) == id })
	}
	for i, f := range b.Festivals {
		for k, l := range f.Lifts {
			if !known(l.Service) {
				return fmt.Errorf("festivals[%d].lifts[%d].service: there is no service %q: write one of %s", i, k, l.Service, b.names())
			}
		}
	}
	for i, g := range b.Surges {
		if g.Service != "" && !known(g.Service) {
			return fmt.Errorf("surges[%d].service: there is no service %q: write one of %s", i, g.Service, b.names())
		}
	}
	return nil
}
