package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/forecast"
	"github.com/springtide/springtide/portrait"
	"github.com/springtide/springtide/store"
)

// pastAction is one line of the journal about a subject.
type pastAction struct {
	Time    time.Time `json:"time"`
	Cycle   int64     `json:"cycle"`
	Action  string    `json:"action"`
	Outcome string    `json:"outcome,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
}

// shownDecisions is how many lines of the journal explain prints: the newest ones.
const shownDecisions = 15

// journalKinds are the names under which the journal keeps what explain is asked about.
var journalKinds = map[string]string{"ElasticService": store.KindService, "Node": store.KindNode, "Loan": store.KindLoan, "ElasticJob": store.KindJob}

// decisionsOf reads what the journal says of a subject, the newest last.
func decisionsOf(ctx context.Context, m memory, kind string, name fleet.Name) ([]pastAction, error) {
	lines, err := m.About(ctx, journalKinds[kind], name.String(), shownDecisions)
	if err != nil {
		return nil, err
	}
	slices.Reverse(lines)
	out := make([]pastAction, len(lines))
	for i, l := range lines {
		out[i] = pastAction{Time: l.At, Cycle: int64(l.Revision), Action: l.Action, Outcome: l.Outcome, Reason: l.Reason, Message: l.Message}
	}
	return out, nil
}

// openStore opens the controller's store for reading: nothing is created, so that a slip in the path shows.
func openStore(ctx context.Context, dsn string) (*store.Store, error) {
	s, err := store.Open(ctx, dsn, store.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return s, nil
}

// learned is what the controller's store knows of services.
type learned struct {
	portraits map[fleet.ServiceID]portrait.Portrait
	tides     map[fleet.ServiceID]forecast.Tide
}

// learnedOf reads the portraits, and the newest tide of each service.
func learnedOf(ctx context.Context, m memory, services []fleet.Service) (*learned, error) {
	var err error
	l := &learned{tides: make(map[fleet.ServiceID]forecast.Tide, len(services))}
	if l.portraits, err = m.LoadPortraits(ctx); err != nil {
		return nil, err
	}
	for i := range services {
		newest, err := m.TidesOf(ctx, services[i].ID, 1)
		if err != nil {
			return nil, err
		}
		if len(newest) > 0 {
			l.tides[services[i].ID] = newest[0]
		}
	}
	return l, nil
}

func (p *page) decisions(lines []pastAction) {
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{stamp(&metav1.Time{Time: l.Time}), number(l.Cycle), l.Action, orNone(l.Outcome), orNone(l.Reason), orNone(l.Message)}
	}
	p.table("Decisions", "the journal holds none", []string{"TIME", "CYCLE", "ACTION", "OUTCOME", "REASON", "MESSAGE"}, rows)
}
