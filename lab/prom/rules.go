package prom

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// defaultInterval is the evaluation interval of groups that state none, as in Prometheus.
const defaultInterval = time.Minute

// LoadRules replaces the rules by those of the given files, in Prometheus' rule format. Groups are evaluated in the order
// of the files and, within a file, of their names, so that a rule may build on those of an earlier group.
func (p *Prom) LoadRules(files ...string) error {
	manager := rules.NewManager(&rules.ManagerOptions{
		ExternalURL: &url.URL{Scheme: "http", Host: "localhost"},
		QueryFunc:   rules.EngineQueryFunc(p.engine, p.db),
		// Alerts are read from the API and from the ALERTS series; no receiver is called.
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Appendable: p.db,
		Queryable:  p.db,
		Logger:     p.logger,
		Parser:     p.parser,
		// Rules of a group that do not read one another are evaluated side by side, as Prometheus' option does.
		ConcurrentEvalsEnabled: true,
		MaxConcurrentEvals:     1, // next to the one that runs anyway
	})
	var groups []*rules.Group
	for _, file := range files {
		loaded, errs := manager.LoadGroups(defaultInterval, labels.EmptyLabels(), "", nil, false, file)
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("load rules: %w", err)
		}
		for _, group := range loaded {
			groups = append(groups, group)
			for _, alert := range group.AlertingRules() {
				// An alert writes its series only after its state of before a restart was restored; the lab has no before.
				alert.SetRestored(true)
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *rules.Group) int {
		if byFile := slices.Index(files, a.File()) - slices.Index(files, b.File()); byFile != 0 {
			return byFile
		}
		return strings.Compare(a.Name(), b.Name())
	})
	p.rulesMu.Lock()
	defer p.rulesMu.Unlock()
	p.groups = groups
	return nil
}

// EvalRules evaluates, at the virtual time ts, every group whose interval has passed since its last evaluation. Call it with
// rising times, at least as often as the shortest interval.
func (p *Prom) EvalRules(ctx context.Context, ts time.Time) error {
	var errs []error
	for _, group := range p.ruleGroups() {
		if last := group.GetLastEvalTimestamp(); !last.IsZero() && ts.Sub(last) < group.Interval() {
			continue
		}
		rules.DefaultEvalIterationFunc(ctx, group, ts)
		if err := ctx.Err(); err != nil {
			return err // what was stopped half-way is no fault of the rules
		}
		for _, rule := range group.Rules() {
			if err := rule.LastError(); err != nil {
				errs = append(errs, fmt.Errorf("rule %s of group %s: %w", rule.Name(), group.Name(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// ruleGroups are the loaded groups in order.
func (p *Prom) ruleGroups() []*rules.Group {
	p.rulesMu.RLock()
	defer p.rulesMu.RUnlock()
	return p.groups
}
