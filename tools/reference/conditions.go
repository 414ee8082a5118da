package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// condition is one reason that a condition of one kind of object may have.
type condition struct {
	object, kind, doc, status, reason, text string
}

// owners are the functions that set conditions, by the kind of object that they set them on. Methods of serviceView set those of an
// ElasticService.
var owners = map[string]string{
	"poolConditions": "CapacityPool", "watermark": "CapacityPool", "onePool": "CapacityPool", "accounted": "CapacityPool",
	"jobConditions": "ElasticJob", "gangCondition": "ElasticJob",
	"festivalStatus": "FestivalPlan",
	"loanConditions": "Loan", "cleanLoan": "Loan", "noticedLoan": "Loan", "forcedLoan": "Loan", "refusedLoan": "Loan", "lateLoan": "Loan", "overrun": "Loan",
	"roomCondition": "CapacityPool", "tenant": "CapacityQuota", "tenantStatus": "CapacityQuota", "oneTenant": "CapacityQuota",
}

func (s *source) owner(in *ast.FuncDecl) (string, error) {
	if in.Recv != nil && strings.HasSuffix(s.text(in.Recv.List[0].Type), "serviceView") {
		return "ElasticService", nil
	}
	if o := owners[in.Name.Name]; o != "" {
		return o, nil
	}
	return "", fmt.Errorf("%s: %s sets a condition: add it to the owners of tools/reference", s.fset.Position(in.Pos()), in.Name.Name)
}

// conditions finds every condition that the controller sets.
func (s *source) conditions() ([]condition, error) {
	p := s.pkgs["internal/kube"]
	var out []condition
	for _, c := range slices.Concat(p.calls["set"], p.calls["accept"]) {
		if c.in.Name.Name == "accept" || !strings.HasPrefix(s.text(c.expr.Fun), "c.") {
			continue
		}
		object, err := s.owner(c.in)
		if err != nil {
			return nil, err
		}
		args := c.expr.Args
		if called(c.expr) == "accept" {
			a := s.named("api/v1alpha1", "ConditionAccepted")
			out = append(out, condition{object, a.value, a.doc, "True", "Accepted", p.sentence(c.in, args[1])},
				condition{object, a.value, a.doc, "False", refusal, ""})
			continue
		}
		kinds, err := s.words(p, c.in, args[0])
		if err != nil {
			return nil, err
		}
		reasons, err := s.words(p, c.in, args[2])
		if err != nil {
			return nil, err
		}
		status := strings.TrimPrefix(s.text(args[1]), "metav1.Condition")
		for _, k := range kinds {
			for _, r := range reasons {
				// A phase that says "whole" is True, all others are False; both are made of one set.
				if s.text(args[2]) == "string(g.Phase)" && (r.value == "Whole") != (status == "True") {
					continue
				}
				text := p.sentence(c.in, args[3])
				if strings.Trim(text, "… :;") == "" {
					text = r.doc
				}
				out = append(out, condition{object, k.value, k.doc, status, r.value, text})
			}
		}
	}
	for _, c := range out {
		if c.doc == "" {
			return nil, fmt.Errorf("the condition %s has no constant with a comment", c.kind)
		}
	}
	out = joinEqual(out)
	slices.SortStableFunc(out, func(a, b condition) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.kind, b.kind), cmp.Compare(rank(a.status), rank(b.status)), cmp.Compare(a.reason, b.reason))
	})
	return out, nil
}

// joinEqual makes one row of those that differ in the message alone.
func joinEqual(list []condition) (out []condition) {
	for _, c := range list {
		i := slices.IndexFunc(out, func(x condition) bool {
			return x.object == c.object && x.kind == c.kind && x.status == c.status && x.reason == c.reason
		})
		switch {
		case i < 0:
			out = append(out, c)
		case c.text != "" && !strings.Contains(out[i].text, c.text):
			out[i].text = strings.TrimPrefix(out[i].text+"; or: "+c.text, "; or: ")
		}
	}
	return out
}

// rank puts the good state first.
func rank(status string) int { return slices.Index([]string{"True", "False", "Unknown"}, status) }

// refusals finds the reasons for which objects are refused: what fleet.Refuse is called with, and refuse of the adapters.
func (s *source) refusals() (map[string][]condition, error) {
	kinds := map[string][]string{
		"snapshot_services.go": {"ElasticService"}, "convert_service.go": {"ElasticService", "CapacityPool", "CapacityQuota", "ElasticJob"},
		"snapshot_jobs.go": {"ElasticJob"}, "snapshot.go": {"CapacityPool"}, "snapshot_tenants.go": {"CapacityQuota"}, "report_capacity.go": {"FestivalPlan"},
	}
	out := map[string][]condition{}
	for _, folder := range []string{"internal/kube", "internal/kube/adapter"} {
		p := s.pkgs[folder]
		for _, f := range p.files {
			name := s.fset.Position(f.Pos()).Filename
			objects := kinds[name[strings.LastIndex(name, "/")+1:]]
			if folder != "internal/kube" {
				objects = []string{"ElasticJob"}
			}
			for _, object := range objects {
				list, err := s.refusedIn(p, f)
				if err != nil {
					return nil, err
				}
				for _, c := range list {
					c.object = object
					if c.text == "…" {
						c.text = "what `springtide validate` finds"
					} else if object != objects[0] {
						continue // a message about a field of the first kind
					}
					if !slices.Contains(out[object], c) {
						out[object] = append(out[object], c)
					}
				}
			}
		}
	}
	return out, nil
}

// refusedIn are the refusals that a file makes.
func (s *source) refusedIn(p *pkg, f *ast.File) (out []condition, err error) {
	for _, c := range slices.Concat(p.calls["Refuse"], p.calls["refuse"]) {
		first := map[string]int{"fleet.Refuse": 0, "refuse": 1}[s.text(c.expr.Fun)] // after the list
		if c.expr.Pos() < f.FileStart || c.expr.Pos() >= f.FileEnd || c.in.Name.Name == "refuse" || len(c.expr.Args) < 2 {
			continue
		}
		reasons, err := s.words(p, c.in, c.expr.Args[first])
		if err != nil {
			return nil, err
		}
		for _, r := range reasons {
			out = append(out, condition{reason: r.value, text: blanks(p.sentence(c.in, c.expr.Args[first+1]))})
		}
	}
	return out, nil
}

// capabilities are the conditions of a NodeShare: what the agent finds on a machine.
func (s *source) capabilities(b *strings.Builder) error {
	p := s.pkgs["agent/host"]
	b.WriteString(aboutConditions("NodeShare") + "\nThe node agent sets one condition for each capability of the machine. A missing capability is skipped, and the message says why.\n\n" +
		"| condition | meaning while True |\n|---|---|\n")
	for _, w := range s.set("agent/host", "", "Cap") {
		if w.doc == "" {
			return fmt.Errorf("the capability %s has no comment", w.value)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", w.value, cell(w.doc))
	}
	b.WriteString("\n| reason while False | message |\n|---|---|\n")
	seen := map[string][]string{}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || lit.Type == nil {
				return true
			}
			var reason, text string
			switch s.text(lit.Type) {
			case "named":
				reason, text = p.sentence(nil, lit.Elts[0]), p.sentence(nil, lit.Elts[1])
			case "Capability":
				for _, e := range lit.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						switch s.text(kv.Key) {
						case "Reason":
							reason = p.sentence(nil, kv.Value)
						case "Message":
							text = p.sentence(nil, kv.Value)
						}
					}
				}
			}
			if reason != "" && reason != "Available" && !slices.Contains(seen[reason], text) {
				seen[reason] = append(seen[reason], text)
			}
			return true
		})
	}
	for _, reason := range slices.Sorted(maps.Keys(seen)) {
		slices.Sort(seen[reason])
		fmt.Fprintf(b, "| `%s` | %s |\n", reason, message(strings.Join(seen[reason], "; or: ")))
	}
	return nil
}

// pageOf is the page of one kind's conditions, without its ending.
func pageOf(object string) string { return "conditions-" + strings.ToLower(object) }

// aboutConditions opens the page of one kind.
func aboutConditions(object string) string {
	return "# Conditions of " + object + "\n\nFor operators and tenants. [Conditions](conditions.md) has the other kinds, and says how to read the tables.\n\n" + notice
}

// conditionsPages are an index and a page for each kind of object.
func (s *source) conditionsPages() (map[string]string, error) {
	list, err := s.conditions()
	if err != nil {
		return nil, err
	}
	refusals, err := s.refusals()
	if err != nil {
		return nil, err
	}
	var index, b strings.Builder
	index.WriteString(`# Conditions

For operators and tenants who read ` + "`status.conditions`" + ` of Springtide's objects. The pages list every condition by kind, each status and reason that it may have, and
the message; an ellipsis stands for a value. A single occurrence is an [event](events.md).

` + notice + "\n| object | conditions |\n|---|---|\n")
	out := map[string]string{}
	for i, c := range list {
		first := i == 0 || list[i-1].object != c.object
		if first {
			b.Reset()
			b.WriteString(aboutConditions(c.object))
			fmt.Fprintf(&index, "| [%s](%s.md) | ", c.object, pageOf(c.object))
		}
		if first || list[i-1].kind != c.kind {
			fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| status | reason | message |\n|---|---|---|\n", c.kind, upper(c.doc))
			if !first {
				index.WriteString(", ")
			}
			fmt.Fprintf(&index, "`%s`", c.kind)
		}
		if c.reason == refusal {
			fmt.Fprintf(&b, "| %s | [a refusal](#refusals) | what is wrong, and how to fix it |\n", c.status)
		} else {
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", c.status, c.reason, message(c.text))
		}
		last := i == len(list)-1 || list[i+1].object != c.object
		if last && slices.ContainsFunc(list, func(x condition) bool { return x.object == c.object && x.reason == refusal }) {
			b.WriteString("\n## Refusals\n\nNothing is done for an object that is refused; its event has the same reason and message.\n\n| reason | message |\n|---|---|\n")
			for _, r := range refusals[c.object] {
				fmt.Fprintf(&b, "| `%s` | %s |\n", r.reason, cell(r.text))
			}
			if len(refusals[c.object]) == 0 {
				return nil, fmt.Errorf("no refusal of %s was found", c.object)
			}
			delete(refusals, c.object)
		}
		if last {
			out[pageOf(c.object)] = b.String()
			index.WriteString(" |\n")
		}
	}
	if len(refusals) > 0 {
		return nil, fmt.Errorf("refusals of kinds without conditions: %v", refusals)
	}
	b.Reset()
	if err := s.capabilities(&b); err != nil {
		return nil, err
	}
	out[pageOf("NodeShare")] = b.String()
	fmt.Fprintf(&index, "| [NodeShare](%s.md) | one for each capability of the machine |\n", pageOf("NodeShare"))
	out["conditions"] = index.String()
	return out, nil
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
