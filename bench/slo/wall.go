package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
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
	(&bench{out: out}).heads("p99 under", "it breaks at", "learned", "off by", "")
	for l, limit := range m.Limits {
		at := m.breaks(l)
		learned, ok := m.learn(limit)
		if !ok {
			fmt.Fprintf(out, "| %s | %.0f/s | not yet | | %s |\n", limit, at, met(false))
			continue
		}
		off := learned/at - 1
		fmt.Fprintf(out, "| %s | %.0f/s | %.0f/s | %+.1f %% | %s |\n", limit, at, learned, 100*off, met(off >= -0.15 &&
			off <= 0.05))
	}
	return nil
}

// breaks is the load at which a limit holds in the objective's share of minutes, on the line between the last load
// tried at which it holds and the next.
func (m *measured) breaks(limit int) float64 {
	for i := range m.Truths {
		x := &m.Truths[i]
		switch {
		case x.Holds[limit] >= m.Objective:
		case i == 0:
			return x.Load
		default:
			b := &m.Truths[i-1]
			return b.Load + (x.Load-b.Load)*(b.Holds[limit]-m.Objective)/(b.Holds[limit]-x.Holds[limit])
		}
	}
	return m.Truths[len(m.Truths)-1].Load
}

// learn is the capacity that the product learns of the observed minutes.
func (m *measured) learn(time.Duration) (float64, bool) {
	return 0, false // portrait/capacity is not there yet
}
