package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// column is one column of a view; wide ones are printed under -o wide alone.
type column[T any] struct {
	title string
	wide  bool
	cell  func(*T) string
}

// view is how objects of one kind are listed.
type view[T any] struct {
	plural     string
	namespaced bool
	columns    []column[T]
	// empty is what to say when there is nothing, with what to do about it.
	empty string
}

func newListCommand[T any](o *cliOptions, v view[T], cmd *cobra.Command) *cobra.Command {
	cmd.Args = exactly()
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := o.connect(o)
		if err != nil {
			return err
		}
		return v.run(cmd.Context(), o, c, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	o.cluster(cmd)
	if v.namespaced {
		o.namespaced(cmd, "only this namespace; all of them when empty")
	}
	o.formats(cmd, "table", "wide", "json", "yaml")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on and print what changes, until stopped")
	return cmd
}

func (v *view[T]) run(ctx context.Context, o *cliOptions, c *clients, out, notes io.Writer) error {
	raw, err := c.resource(v.plural, o.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return reading(v.plural, err)
	}
	slices.SortFunc(raw.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if o.output == "json" || o.output == "yaml" {
		if o.watch {
			return usageError{fmt.Errorf("-w prints tables: leave -o %s out", o.output)}
		}
		return encode(out, o.output, listOf(raw))
	}
	wide := o.output == "wide"
	rows := [][]string{v.titles(wide)}
	for i := range raw.Items {
		row, err := v.row(&raw.Items[i], wide)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	t := &table{out: out}
	if len(raw.Items) == 0 && !o.watch {
		fmt.Fprintln(notes, v.empty)
		return nil
	}
	if err := t.print(rows); err != nil || !o.watch {
		return err
	}
	return v.follow(ctx, o, c, t, raw.GetResourceVersion())
}

// follow prints a row for each change until the context ends.
func (v *view[T]) follow(ctx context.Context, o *cliOptions, c *clients, t *table, version string) error {
	w, err := c.resource(v.plural, o.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return reading(v.plural, err)
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
			case !ok || e.Type == watch.Bookmark:
				continue
			}
			row, err := v.row(u, o.output == "wide")
			if err != nil {
				return err
			}
			if e.Type == watch.Deleted {
				row[len(row)-1] = "(deleted)"
			}
			if err := t.print([][]string{row}); err != nil {
				return err
			}
		}
	}
}

func (v *view[T]) titles(wide bool) []string {
	var out []string
	if v.namespaced {
		out = append(out, "NAMESPACE")
	}
	out = append(out, "NAME")
	for _, c := range v.columns {
		if wide || !c.wide {
			out = append(out, c.title)
		}
	}
	return out
}

func (v *view[T]) row(u *unstructured.Unstructured, wide bool) ([]string, error) {
	obj := new(T)
	if err := decode(u, obj); err != nil {
		return nil, err
	}
	var out []string
	if v.namespaced {
		out = append(out, u.GetNamespace())
	}
	out = append(out, u.GetName())
	for _, c := range v.columns {
		if wide || !c.wide {
			out = append(out, c.cell(obj))
		}
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
