package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/hpa"
	"github.com/springtide/springtide/portrait/capacity"
)

// observation is one minute as Prometheus shows it.
type observation struct {
	Load    float64 `json:"load"` // requests a second of the wall
	P99     float64 `json:"p99Seconds"`
	CPU     float64 `json:"cores"`
	Offered float64 `json:"offered"`
}

// truth is what was measured at a load: the share of the minutes that hold, by limit.
type truth struct {
	Load    float64   `json:"load"`
	Minutes int       `json:"minutes"`
	Holds   []float64 `json:"holds"`
}

// measured is what the test leaves; the table needs nothing else.
type measured struct {
	Objective    float64         `json:"objective"`
	Cores        float64         `json:"cores"` // the quota
	Limits       []time.Duration `json:"limits"`
	Observations []observation   `json:"observations"`
	Truths       []truth         `json:"truths"`
}

// byTheWall prints what was learned of a real server next to what it does.
func byTheWall(out io.Writer, in string) error {
	text, err := os.ReadFile(in)
	if err != nil {
		return fmt.Errorf("-in: %w", err)
	}
	var m measured
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	(&bench{out: out}).heads("p99 under", "it breaks at", "learned", "its band", "off by", "")
	for l, limit := range m.Limits {
		at := m.breaks(l)
		e := m.learn(limit)
		off := e.Load/at - 1
		fmt.Fprintf(out, "| %s | %.0f/s | %.0f/s | %.0f to %.0f/s | %+.1f %% | %s |\n",
			limit, at, e.Load, e.Low, e.High, 100*off, met(off >= -0.15 && off <= 0.05))
	}
	return nil
}

// breaks is the load at which a limit holds in the objective's share of minutes, on the line between the last load at
// which it holds and the next. Shares that rise with the load are chance: such loads get the mean of their minutes.
func (m *measured) breaks(limit int) float64 {
	holds := m.falling(limit)
	for i, share := range holds {
		switch load := m.Truths[i].Load; {
		case share >= m.Objective:
		case i == 0:
			return load
		default:
			before := m.Truths[i-1].Load
			return before + (load-before)*(holds[i-1]-m.Objective)/(holds[i-1]-share)
		}
	}
	return m.Truths[len(m.Truths)-1].Load
}

// falling are the shares that hold, none above the one before.
func (m *measured) falling(limit int) []float64 {
	var out []float64
	for i := range m.Truths {
		out = append(out, m.Truths[i].Holds[limit])
		// A share that rises is joined with all before it that are not above the mean of what is joined.
		for from, sum := i, out[i]; from > 0; {
			mean := sum / float64(i-from+1)
			if out[from-1] >= mean {
				break
			}
			from--
			sum += m.Truths[from].Holds[limit]
			for k := from; k <= i; k++ {
				out[k] = sum / float64(i-from+1)
			}
		}
	}
	return out
}

// apart is how far apart the minutes are dated: a capacity rises by a tenth a day, so that they must stand for days.
const apart = 20 * time.Minute

// learn is the capacity that the product learns of the observed minutes. It begins with the rule of 60 % of CPU.
func (m *measured) learn(limit time.Duration) capacity.Estimate {
	l := capacity.Level{Name: fleet.LatencyName(0.99)}
	terms := capacity.Terms{Limit: limit.Seconds(), Objective: m.Objective, Rule: m.rule()}
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, o := range m.Observations {
		at = at.Add(apart)
		l.Observe(capacity.Minute{At: at, Load: o.Load, Value: o.P99, CPU: o.CPU}, terms)
	}
	return l.Capacity(m.Objective)
}

// rule is the load at which the server uses 60 % of its quota.
func (m *measured) rule() float64 {
	load, cores := 0.0, 0.0
	for _, o := range m.Observations {
		load, cores = load+o.Load, cores+o.CPU
	}
	return hpa.Standard().LatencyUtilisation * m.Cores * load / cores
}
