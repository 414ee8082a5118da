package model

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/replay"
	"github.com/springtide/springtide/lab/traces"
)

// DefaultShare of the online pool's cores is what static provisioning of all services requests together: an operator who plans by the
// peak keeps a tenth of the pool for what no plan holds.
const DefaultShare = 0.9

// Spec says how a fleet is made.
type Spec struct {
	// OnlineCores are the allocatable cores of the online pool.
	OnlineCores float64
	// Share (0..1] of them is what static provisioning requests; DefaultShare when 0.
	Share float64
	Seed  uint64
}

// Fleet is the online services with their loads.
type Fleet struct {
	Services []*Service
	feed     *traces.Feed
}

// NewFleet makes services of sources. The rule sees histories only:
//
//  1. a tenth of the services (at least one) are large, three tenths medium, the rest small; who is what is drawn by the seed;
//  2. the size draws the pod's cores, the latency limit and the median start-up time; the capacity of a replica at the SLO follows;
//  3. the cores to be requested, OnlineCores × Share, are divided by weight (large 8, medium 3, small 1): Static is the number of pods
//     that fit into a service's part, at least two; cores left by rounding go to the services that were rounded most, in turn;
//  4. the load is scaled so that Static = ⌈peak of the last week of history × 1.2 / Capacity⌉.
func NewFleet(sources []traces.Source, spec Spec) (*Fleet, error) {
	if spec.Share == 0 {
		spec.Share = DefaultShare
	}
	if len(sources) == 0 || !(spec.OnlineCores > 0) || !(spec.Share > 0 && spec.Share <= 1) {
		return nil, fmt.Errorf("fleet: want sources, cores and a share in (0, 1], have %d, %v and %v", len(sources), spec.OnlineCores, spec.Share)
	}
	f := &Fleet{feed: traces.NewFeed(sources)}
	sizes := drawSizes(sources, spec.Seed)
	weights := 0.0
	for i, src := range sources {
		f.Services = append(f.Services, newService(src, sizes[i], spec.Seed))
		weights += sizes[i].weight
	}
	if err := f.divide(sizes, spec.OnlineCores*spec.Share, weights); err != nil {
		return nil, err
	}
	for _, s := range f.Services {
		// A hair less than the bound, so that rounding cannot lift the ceiling.
		s.Scale = float64(s.Static) * s.Capacity / headroom * (1 - 1e-9)
	}
	return f, nil
}

// drawSizes ranks the services by a draw and cuts the ranking, so that the numbers of each size hold exactly.
func drawSizes(sources []traces.Source, seed uint64) []sizing {
	rank := make([]int, len(sources))
	for i := range rank {
		rank[i] = i
	}
	draw := func(i int) uint64 { return mix(seed ^ replay.Seed("size", sources[i].Name)) }
	slices.SortFunc(rank, func(a, b int) int { return cmp.Or(cmp.Compare(draw(a), draw(b)), cmp.Compare(a, b)) })
	large := max(1, len(sources)/10)
	medium := large + len(sources)*3/10
	out := make([]sizing, len(sources))
	for r, i := range rank {
		switch {
		case r < large:
			out[i] = sizings[2]
		case r < medium:
			out[i] = sizings[1]
		default:
			out[i] = sizings[0]
		}
	}
	return out
}

func newService(src traces.Source, z sizing, seed uint64) *Service {
	s := &Service{
		Name:   fleet.Name{Namespace: src.Group, Name: src.Name},
		Source: src, Size: z.size, HTTP: src.Kind != traces.CPU,
		seed: mix(seed ^ replay.Seed(src.Name)),
	}
	r := rand.New(rand.NewPCG(s.seed, 0))
	s.Cores, s.Idle = z.cores[r.IntN(len(z.cores))], idleShare
	s.Request = fleet.Resources{CPU: fleet.FromCores(float64(s.Cores)), Memory: memoryPerCore * fleet.Bytes(s.Cores), Pods: 1}
	s.promise(r)
	s.StartUp = (z.quick + time.Duration(r.Float64()*float64(z.tardy-z.quick))).Round(time.Second)
	return s
}

// divide gives each service its static replicas.
func (f *Fleet) divide(sizes []sizing, cores, weights float64) error {
	type rest struct {
		service int
		lost    float64
	}
	rests := make([]rest, 0, len(f.Services))
	left := cores
	for i, s := range f.Services {
		part := cores * sizes[i].weight / weights
		s.Static = max(2, int(part/float64(s.Cores)))
		left -= float64(s.Static * s.Cores)
		rests = append(rests, rest{i, part - float64(s.Static*s.Cores)})
	}
	if left < 0 {
		return fmt.Errorf("fleet: %.0f cores are too few for two pods of each of %d services: %.0f are missing", cores, len(f.Services), -left)
	}
	slices.SortFunc(rests, func(a, b rest) int { return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(a.service, b.service)) })
	for _, r := range rests {
		if s := f.Services[r.service]; float64(s.Cores) <= left {
			s.Static++
			left -= float64(s.Cores)
		}
	}
	return nil
}

// Rates are the true loads in requests per second that press on each service in the step that holds t, in the order of Services.
func (f *Fleet) Rates(t time.Time) []float64 {
	view := f.feed.At(t)
	out := make([]float64, len(f.Services))
	for i, s := range f.Services {
		out[i] = s.rate(view.Now(i), t)
	}
	return out
}

// Find returns the index of the service with this name, or -1.
func (f *Fleet) Find(name fleet.Name) int {
	return slices.IndexFunc(f.Services, func(s *Service) bool { return s.Name == name })
}

// StaticCores are the cores that static provisioning requests.
func (f *Fleet) StaticCores() float64 {
	sum := 0.0
	for _, s := range f.Services {
		sum += float64(s.Static * s.Cores)
	}
	return sum
}
