package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
)

// Table prints rows in columns, as kubectl does. It remembers its widths, so that rows that come later (a watch) stand below.
type Table struct {
	Out    io.Writer
	widths []int
	titles []string
	// Colours are used where the output is a terminal.
	Colours bool
	// Tight puts columns closer together, for lists of many columns.
	Tight bool
	// Fit cuts the last column so that lines are at most MostWidth wide.
	Fit bool
}

const (
	// gap is the room between two columns, tightGap that of a list.
	gap, tightGap = 3, 2
	// MostWidth is how wide a default table is at most, and leastLast what the last column keeps in any case.
	MostWidth = 120
	leastLast = 9
)

// Print writes rows; the last column is left ragged, since it holds the sentences. The first rows of a table begin with its titles.
func (t *Table) Print(rows [][]string) error {
	if t.titles == nil && len(rows) > 0 {
		t.titles = rows[0]
	}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	between := gap
	if t.Tight {
		between = tightGap
	}
	used := 0
	for i := range len(t.widths) - 1 {
		used += t.widths[i] + between
	}
	var b bytes.Buffer
	for _, row := range rows {
		for i, cell := range row {
			last := i == len(row)-1
			if last && t.Fit {
				cell = v1alpha1.Clip(cell, max(MostWidth-used, leastLast))
			}
			text := cell
			if t.Colours && i < len(t.titles) && cell != t.titles[i] {
				text = tinted(t.titles[i], cell)
			}
			b.WriteString(text)
			if !last {
				b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+between))
			}
		}
		b.WriteByte('\n')
	}
	_, err := t.Out.Write(b.Bytes())
	return err
}

// Encode writes a value as JSON or YAML.
func Encode(out io.Writer, format string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // reasons read "31 -> 48"
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode as %s: %w", format, err)
	}
	text := b.Bytes()
	if bytes.Contains(text, []byte(`"managedFields"`)) {
		// Managed fields are for the API server; it would be most of what is printed.
		var plain any
		d := json.NewDecoder(&b)
		d.UseNumber()
		if err := d.Decode(&plain); err != nil {
			return fmt.Errorf("encode as %s: %w", format, err)
		}
		dropManaged(plain)
		return Encode(out, format, plain)
	}
	if format == "yaml" {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("encode as %s: %w", format, err)
		}
	}
	_, err := out.Write(text)
	return err
}

// dropManaged takes managedFields out of every object in a value.
func dropManaged(v any) {
	switch x := v.(type) {
	case map[string]any:
		delete(x, "managedFields")
		for _, inner := range x {
			dropManaged(inner)
		}
	case []any:
		for _, inner := range x {
			dropManaged(inner)
		}
	}
}
