package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// either is the type of an event that may be both.
const either = "Normal or Warning"

// event is one reason of events on one kind of object.
type event struct {
	object, reason, kind, doc string
	messages                  []string
}

// events finds every event that is recorded.
func (s *source) events() ([]*event, error) {
	type key struct{ object, reason string }
	found := map[key]*event{}
	for _, folder := range []string{"internal/kube", "scheduler/host"} {
		p := s.pkgs[folder]
		for _, c := range slices.Concat(p.calls["Event"], p.calls["Eventf"]) {
			sel, ok := c.expr.Fun.(*ast.SelectorExpr)
			if x := s.text(sel.X); !ok || x != "c.events" && !strings.HasSuffix(x, "recorder") {
				continue
			}
			// client-go's two recorders differ in a second object, and in the action before the message.
			args := c.expr.Args
			if folder == "scheduler/host" {
				args = append([]ast.Expr{args[0], args[2], args[3]}, args[5:]...)
			}
			objects, err := s.objects(p, c.in, args[0])
			if err != nil {
				return nil, err
			}
			kinds, err := s.kinds(p, c.in, args[1])
			if err != nil {
				return nil, err
			}
			reasons, err := s.words(p, c.in, args[2])
			if err != nil {
				return nil, err
			}
			message := p.sentence(c.in, args[3])
			if called(c.expr) == "Eventf" {
				message = p.format(c.in, args[3])
			}
			for _, object := range objects {
				for _, r := range reasons {
					if r.doc == "" && r.value != refusal {
						return nil, fmt.Errorf("%s: the reason %s has no constant with a comment", s.fset.Position(c.expr.Pos()), r.value)
					}
					e := found[key{object, r.value}]
					if e == nil {
						e = &event{object: object, reason: r.value, doc: r.doc, kind: kinds}
						found[key{object, r.value}] = e
					}
					if e.kind != kinds {
						e.kind = either
					}
					if !slices.Contains(e.messages, message) && strings.Trim(message, "…: ") != "" && !strings.HasPrefix(message, "…: ") {
						e.messages = append(e.messages, message)
					}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *event) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.reason, b.reason))
	}), nil
}

// kinds says whether an event is a warning; callers may pass either.
func (s *source) kinds(p *pkg, in *ast.FuncDecl, e ast.Expr) (string, error) {
	switch s.text(e) {
	case "corev1.EventTypeNormal":
		return "Normal", nil
	case "corev1.EventTypeWarning":
		return "Warning", nil
	}
	if id, ok := e.(*ast.Ident); ok && parameter(in, id.Name) >= 0 {
		return either, nil
	}
	return "", fmt.Errorf("%s: an event of type %s", s.fset.Position(e.Pos()), s.text(e))
}

// objects finds the kinds of object that an expression refers to.
func (s *source) objects(p *pkg, in *ast.FuncDecl, e ast.Expr) ([]string, error) {
	switch e := e.(type) {
	case *ast.CallExpr:
		switch called(e) {
		case "podReference":
			return []string{"Pod"}, nil
		case "serviceReference":
			return []string{"ElasticService"}, nil
		case "reference":
			if lit, ok := e.Args[0].(*ast.BasicLit); ok {
				kind, err := strconv.Unquote(lit.Value)
				return []string{kind}, err
			}
		}
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return s.objects(p, in, e.X)
		}
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok && s.text(kv.Key) == "Kind" {
				kind, err := strconv.Unquote(s.text(kv.Value))
				return []string{kind}, err
			}
		}
	case *ast.SelectorExpr:
		if p.path == "scheduler/host" && e.Sel.Name == "pod" {
			return []string{"Pod"}, nil
		}
	case *ast.Ident:
		return s.referred(p, in, e)
	}
	return nil, fmt.Errorf("%s: cannot tell which object %s is", s.fset.Position(e.Pos()), s.text(e))
}

// referred finds what a local name refers to: what was assigned to it, or what callers pass.
func (s *source) referred(p *pkg, in *ast.FuncDecl, id *ast.Ident) ([]string, error) {
	var out []string
	var failed error
	take := func(fn *ast.FuncDecl, e ast.Expr) {
		list, err := s.objects(p, fn, e)
		out, failed = append(out, list...), cmp.Or(failed, err)
	}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if v, ok := n.Lhs[0].(*ast.Ident); ok && v.Name == id.Name && len(out) == 0 {
				take(in, n.Rhs[0])
			}
		case *ast.Field: // of a function literal
			if kind, ok := strings.CutPrefix(s.text(n.Type), "*corev1."); ok && (kind == "Pod" || kind == "Node") && len(n.Names) == 1 && n.Names[0].Name == id.Name && len(out) == 0 {
				out = append(out, kind)
			}
		}
		return true
	})
	if i := parameter(in, id.Name); i >= 0 && len(out) == 0 {
		for _, c := range p.calls[in.Name.Name] {
			take(c.in, c.expr.Args[i])
		}
	}
	if len(out) == 0 && failed == nil {
		failed = fmt.Errorf("%s: cannot tell which object %s is", s.fset.Position(id.Pos()), id.Name)
	}
	return out, failed
}

// ofTheCluster are the kinds that are not Springtide's own: their events have a page of their own.
var ofTheCluster = []string{"HorizontalPodAutoscaler", "Lease", "Node", "Pod"}

func (s *source) eventsPages() (map[string]string, error) {
	list, err := s.events()
	if err != nil {
		return nil, err
	}
	var own, cluster strings.Builder
	own.WriteString(`# Events

For operators and tenants who read ` + "`kubectl describe` or `kubectl get events`" + `. The page lists every reason by the object that the event is on, with its type, what happened, and the
message; an ellipsis stands for a value. Events on pods, nodes, leases and HorizontalPodAutoscalers are on [a page of their own](events-cluster.md). Standing states are [conditions](conditions.md).

` + notice)
	cluster.WriteString(`# Events on pods, nodes, leases and HorizontalPodAutoscalers

For operators and tenants who read ` + "`kubectl describe` or `kubectl get events`" + `. [Events](events.md) has those on Springtide's own objects, and says how to read the table.

` + notice)
	object := ""
	for _, e := range list {
		b := &own
		if slices.Contains(ofTheCluster, e.object) {
			b = &cluster
		}
		if e.object != object {
			object = e.object
			fmt.Fprintf(b, "\n## %s\n\n| reason | type | what happened | message |\n|---|---|---|---|\n", object)
		}
		if e.reason == refusal {
			fmt.Fprintf(b, "| [a refusal](conditions-%s.md#refusals) | %s | the object is refused: nothing is done for it | what is wrong, and how to fix it |\n", strings.ToLower(object), e.kind)
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", e.reason, e.kind, cell(e.doc), message(strings.Join(e.messages, "; or: ")))
	}
	return map[string]string{"events": own.String(), "events-cluster": cluster.String()}, nil
}
