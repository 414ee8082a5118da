package signal

import (
	"time"

	"github.com/springtide/springtide/fleet"
)

// Samples are what a source measured last, as it was read: nothing is added up, nothing stands in for what is
// missing, and nothing is left out for its age. Readers do not change them.
type Samples struct {
	// Requests are requests per second, CPU is cores, each by pod with the time at which the pod was scraped.
	Requests, CPU map[fleet.Name]fleet.Known[float64]
	// Unsound are the pods whose newest value is none that a load can have, with that value. The last good one stays
	// where it is.
	Unsound map[fleet.Name]float64
	// Services are the services that the source was asked about, with what it measures of them and not of their pods.
	Services map[fleet.ServiceID]Service
}

// Service is what a source measures of a service and not of its pods.
type Service struct {
	// RequestsWindow and CPUWindow are what the rates of its pods average over; 0 means a minute.
	RequestsWindow, CPUWindow time.Duration
	// Requests and CPU are totals where the source measures the service as one, as an ingress does: no sum over pods is
	// made then.
	Requests, CPU fleet.Known[float64]
	// Levels are the values of the levels that the SLO states, by the level's name, each in the unit of its limit: what
	// arrives a second of a throughput, what waits of a backlog. A level of CPU is not among them, as pods measure it.
	Levels map[string]fleet.Known[float64]
	// Queries are the values of the service's own queries, by the metric's name.
	Queries map[string]fleet.Known[float64]
}

// Looks is what is remembered of a service from one look at its samples to the next. The zero value has looked at
// nothing.
type Looks struct{ requests, cpu share }

// Requests is the total of a service's requests per second. Pods that are not ready count: requests reach them until
// they are gone.
func (l *Looks) Requests(s *fleet.Service, x *Samples, now time.Time) (out fleet.Known[float64]) {
	of := x.Services[s.ID]
	if of.Requests.OK {
		return of.Requests
	}
	out, l.requests = total(s, x.Requests, l.requests.at(now), of.RequestsWindow, now, true)
	return out
}

// CPU is the total of a service's CPU in cores. Pods that are not ready do not count: their CPU is start-up and no
// load.
func (l *Looks) CPU(s *fleet.Service, x *Samples, now time.Time) (out fleet.Known[float64]) {
	of := x.Services[s.ID]
	if of.CPU.OK {
		return of.CPU
	}
	out, l.cpu = total(s, x.CPU, l.cpu.at(now), of.CPUWindow, now, false)
	return out
}

// Missing reports whether a total of rates over a window is missing or too old, though some pod ought to have been
// measured by now.
func Missing(s *fleet.Service, total fleet.Known[float64], window time.Duration, now time.Time) bool {
	ages := Ages{Fresh: MissingAfter(window)}
	if ages.Judge(total.OK && Sound(total.Value), total.At, now) == Fresh {
		return false
	}
	for i := range s.Pods {
		if MustReport(&s.Pods[i], window, now) {
			return true
		}
	}
	return false
}
