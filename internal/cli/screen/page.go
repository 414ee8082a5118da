package screen

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/internal/cli/cell"
)

// Page is an answer of `explain` for people: a title, facts, and tables below.
type Page struct {
	Title    string
	facts    []fact
	sections []section
}

type fact struct{ name, text string }

type section struct {
	title string
	rows  [][]string
	// empty is what to say without any row; the section is left out when it is empty too.
	empty string
}

// Add adds a fact.
func (p *Page) Add(name, format string, args ...any) {
	p.facts = append(p.facts, fact{name, fmt.Sprintf(format, args...)})
}

// Table adds a section; the first row holds the titles.
func (p *Page) Table(title, empty string, titles []string, rows [][]string) {
	s := section{title: title, empty: empty}
	if len(rows) > 0 {
		s.rows = append([][]string{titles}, rows...)
	}
	p.sections = append(p.sections, s)
}

// Print writes the page.
func (p *Page) Print(out io.Writer) error {
	var b strings.Builder
	b.WriteString(p.Title + "\n")
	width := 0
	for _, f := range p.facts {
		width = max(width, utf8.RuneCountInString(f.name))
	}
	for _, f := range p.facts {
		fmt.Fprintf(&b, "  %s%s   %s\n", f.name, strings.Repeat(" ", width-utf8.RuneCountInString(f.name)), f.text)
	}
	for _, s := range p.sections {
		if len(s.rows) == 0 {
			if s.empty != "" {
				fmt.Fprintf(&b, "\n%s\n  %s\n", s.title, s.empty)
			}
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", s.title)
		rows := make([][]string, len(s.rows))
		for i, row := range s.rows {
			rows[i] = append([]string{"  " + row[0]}, row[1:]...)
		}
		if err := (&Table{Out: &b}).Print(rows); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Conditions adds the table of an object's conditions.
func (p *Page) Conditions(cs []metav1.Condition) {
	rows := make([][]string, len(cs))
	for i := range cs {
		rows[i] = []string{cs[i].Type, string(cs[i].Status), cell.Stamp(&cs[i].LastTransitionTime), cell.OrNone(cs[i].Reason), cell.OrNone(cs[i].Message)}
	}
	p.Table("Conditions", "", []string{"TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"}, rows)
}
