// Package view lists objects and machines as tables.
package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/jsonpath"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// standing is in which tables a column stands.
type standing int8

const (
	always    standing = iota
	wideAlone          // under -o wide
	tableOnly          // in the default table, where a shorter form stands for one of -o wide
)

// column is one column of a view.
type column[T any] struct {
	title string
	in    standing
	cell  func(*T) string
}

// view is how objects of one kind are listed.
type view[T any] struct {
	plural     string
	namespaced bool
	// acts says that a freeze holds what the objects ask for, so that it is shown above them.
	acts    bool
	columns []column[T]
	// least is the title of the column of which the smallest value comes first, as what is left of a budget.
	least string
	// seen is when what the status of an object says was seen. Where it is given, a column before the last one says how long ago that is.
	seen func(*T) *metav1.Time
	// empty is what to say when there is nothing, with what to do about it.
	empty string
}

func newListCommand[T any](o *cluster.Options, v view[T], cmd *cobra.Command) *cobra.Command {
	cmd.Use += " [NAME...]"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := o.Connect(o)
		if err != nil {
			return err
		}
		return v.run(cmd.Context(), o, c, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	o.Cluster(cmd)
	if v.namespaced {
		o.Namespaced(cmd, "namespace to look in; that of the context when empty")
		cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	}
	o.Formats(cmd, "table", "wide", "json", "yaml")
	o.CompletesAll(cmd, v.plural)
	f := cmd.Flags()
	f.StringVarP(&o.Selector, "selector", "l", "", "only objects with these labels, as in team=shop,tier!=batch")
	f.StringVar(&o.SortBy, "sort-by", "", "column or JSONPath to sort by, as in desired or .status.replicas; by name when empty")
	f.BoolVarP(&o.Watch, "watch", "w", false, "go on and print what changes, until stopped")
	usage.Before(cmd, func(*cobra.Command, []string) error {
		if _, err := labels.Parse(o.Selector); err != nil {
			return usage.Error{Err: fmt.Errorf("-l %s: %w", o.Selector, err)}
		}
		return nil
	})
	return cmd
}

// where is the namespace to look in; empty for all of them and for kinds of the whole cluster.
func (v *view[T]) where(o *cluster.Options, c *cluster.Clients) string {
	if !v.namespaced || o.AllNamespaces {
		return ""
	}
	return cmp.Or(o.Namespace, c.Namespace)
}

func (v *view[T]) run(ctx context.Context, o *cluster.Options, c *cluster.Clients, names []string, out, notes io.Writer) error {
	namespace := v.where(o, c)
	raw, err := c.Resource(v.plural, namespace).List(ctx, metav1.ListOptions{LabelSelector: o.Selector})
	if err != nil {
		return cluster.Reading(v.plural, err)
	}
	if raw.Items, err = pick(raw.Items, names, namespace, v.plural); err != nil {
		return err
	}
	if err := v.sort(raw.Items, o, c.Now()); err != nil {
		return err
	}
	if o.Output == "json" || o.Output == "yaml" {
		if err := screen.Encode(out, o.Output, listOf(raw)); err != nil || !o.Watch {
			return err
		}
		return v.follow(ctx, o, c, names, raw.GetResourceVersion(), func(u *unstructured.Unstructured, _ bool) error {
			if o.Output == "yaml" {
				fmt.Fprintln(out, "---")
			}
			return screen.Encode(out, o.Output, u.Object)
		})
	}
	if v.acts {
		if why := c.Frozen(ctx); why != "" {
			fmt.Fprintf(notes, "frozen: %s (springtide thaw ends it)\n", why)
		}
	}
	wide := o.Output == "wide"
	rows := [][]string{v.titles(wide, o.AllNamespaces)}
	for i := range raw.Items {
		row, err := v.row(&raw.Items[i], wide, o.AllNamespaces, c.Now())
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	t := &screen.Table{Out: out, Colours: screen.ColoursFor(out), Tight: true, Fit: !wide}
	if len(raw.Items) == 0 && !o.Watch {
		text := v.empty
		if namespace != "" {
			text = "in namespace " + namespace + ": " + text + "; -A looks in all namespaces"
		}
		fmt.Fprintln(notes, text)
		return nil
	}
	if err := t.Print(rows); err != nil || !o.Watch {
		return err
	}
	return v.follow(ctx, o, c, names, raw.GetResourceVersion(), func(u *unstructured.Unstructured, deleted bool) error {
		row, err := v.row(u, wide, o.AllNamespaces, c.Now())
		if err != nil {
			return err
		}
		if deleted {
			row[len(row)-1] = "(deleted)"
		}
		return t.Print([][]string{row})
	})
}

// pick keeps the objects that are named; all of them without names. A name that is not there is an error.
func pick(items []unstructured.Unstructured, names []string, namespace, plural string) ([]unstructured.Unstructured, error) {
	if len(names) == 0 {
		return items, nil
	}
	var out []unstructured.Unstructured
	for _, arg := range names {
		found := false
		for i := range items {
			if isNamed(&items[i], arg) {
				out, found = append(out, items[i]), true
			}
		}
		if !found {
			known := make([]string, len(items))
			for i := range items {
				known[i] = items[i].GetName()
			}
			where := ""
			if namespace != "" {
				where = " in namespace " + namespace
			}
			return nil, usage.Found("there is no %s among the %s%s%s", arg, plural, where, usage.DidYouMean(arg, known))
		}
	}
	return out, nil
}

func isNamed(u *unstructured.Unstructured, arg string) bool {
	n := fleet.ParseName(arg)
	return u.GetName() == n.Name && (n.Namespace == "" || n.Namespace == u.GetNamespace())
}

// sort orders by namespace and name, or as --sort-by says.
func (v *view[T]) sort(items []unstructured.Unstructured, o *cluster.Options, now time.Time) error {
	slices.SortFunc(items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if o.SortBy == "" {
		return nil
	}
	key, err := v.sortKey(o.SortBy, now)
	if err != nil {
		return usage.Error{Err: err}
	}
	keys := make(map[string]string, len(items))
	id := func(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }
	for i := range items {
		if keys[id(&items[i])], err = key(&items[i]); err != nil {
			return err
		}
	}
	order := ordered(v.least != "" && strings.EqualFold(o.SortBy, v.least))
	slices.SortStableFunc(items, func(a, b unstructured.Unstructured) int { return order(keys[id(&a)], keys[id(&b)]) })
	return nil
}

func (v *view[T]) sortKey(by string, now time.Time) (func(*unstructured.Unstructured) (string, error), error) {
	if strings.ContainsAny(by, ".{") {
		if !strings.HasPrefix(by, "{") {
			by = "{" + by + "}"
		}
		path := jsonpath.New("sort-by").AllowMissingKeys(true)
		if err := path.Parse(by); err != nil {
			return nil, fmt.Errorf("--sort-by %s: %w", by, err)
		}
		return func(u *unstructured.Unstructured) (string, error) {
			var b strings.Builder
			err := path.Execute(&b, u.Object)
			return b.String(), err
		}, nil
	}
	titles := v.titles(true, true)
	i := slices.IndexFunc(titles, func(t string) bool { return strings.EqualFold(t, by) })
	if i < 0 {
		if near := usage.DidYouMean(strings.ToUpper(by), titles); near != "" {
			return nil, fmt.Errorf("--sort-by %s: there is no such column%s", by, strings.ToLower(near))
		}
		return nil, fmt.Errorf("--sort-by %s: there is no such column: write one of %s", by, strings.ToLower(strings.Join(titles, ", ")))
	}
	return func(u *unstructured.Unstructured) (string, error) {
		row, err := v.row(u, true, true, now)
		if err != nil {
			return "", err
		}
		return row[i], nil
	}, nil
}

// compareCells compares by the numbers that cells begin with where both do, the larger first, and by their text otherwise.
// An unknown value comes last.
func compareCells(a, b string) int {
	if (a == cell.None) != (b == cell.None) {
		if a == cell.None {
			return 1
		}
		return -1
	}
	x, okX := leading(a)
	y, okY := leading(b)
	if okX && okY {
		return cmp.Compare(y, x)
	}
	return cmp.Compare(a, b)
}

// ordered compares cells as [compareCells] does, or with the smallest number first.
func ordered(least bool) func(a, b string) int {
	if !least {
		return compareCells
	}
	return func(a, b string) int {
		if a != cell.None && b != cell.None {
			a, b = b, a
		}
		return compareCells(a, b)
	}
}

func leading(s string) (float64, bool) {
	i := 0
	if len(s) > 1 && s[0] == '-' {
		i = 1
	}
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	if i < len(s) && s[i] == '-' { // a date
		return 0, false
	}
	f, err := strconv.ParseFloat(s[:i], 64)
	return f, err == nil
}

// follow shows each change until the context ends.
func (v *view[T]) follow(ctx context.Context, o *cluster.Options, c *cluster.Clients, names []string, version string, show func(u *unstructured.Unstructured, deleted bool) error) error {
	w, err := c.Resource(v.plural, v.where(o, c)).Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: o.Selector})
	if err != nil {
		return cluster.Reading(v.plural, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			switch {
			case !open || e.Type == watch.Error:
				return fmt.Errorf("the API server ended the watch of %s: start it again", v.plural)
			case !ok || e.Type == watch.Bookmark || len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return isNamed(u, n) }):
				continue
			}
			if err := show(u, e.Type == watch.Deleted); err != nil {
				return err
			}
		}
	}
}

// stands reports whether a column stands in a table.
func (c *column[T]) stands(wide bool) bool {
	return c.in == always || wide == (c.in == wideAlone)
}

func (v *view[T]) titles(wide, namespaces bool) []string {
	var out []string
	if v.namespaced && namespaces {
		out = append(out, "NAMESPACE")
	}
	out = append(out, "NAME")
	for i := range v.columns {
		if v.columns[i].stands(wide) {
			out = append(out, v.columns[i].title)
		}
	}
	if v.seen != nil {
		out = slices.Insert(out, len(out)-1, "SEEN")
	}
	return out
}

func (v *view[T]) row(u *unstructured.Unstructured, wide, namespaces bool, now time.Time) ([]string, error) {
	obj := new(T)
	if err := cluster.Decode(u, obj); err != nil {
		return nil, err
	}
	var out []string
	if v.namespaced && namespaces {
		out = append(out, u.GetNamespace())
	}
	out = append(out, u.GetName())
	for i := range v.columns {
		if v.columns[i].stands(wide) {
			out = append(out, v.columns[i].cell(obj))
		}
	}
	if v.seen != nil {
		out = slices.Insert(out, len(out)-1, cell.ShortAge(v.seen(obj), now))
	}
	return out, nil
}

// listOf is the List that kubectl prints, so that it can be given back to kubectl or to `springtide validate`.
func listOf(raw *unstructured.UnstructuredList) map[string]any {
	items := make([]any, len(raw.Items))
	for i := range raw.Items {
		items[i] = raw.Items[i].Object
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}
