package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// page is an answer of `explain` for people: a title, facts, and tables below.
type page struct {
	title    string
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

func (p *page) add(name, format string, args ...any) {
	p.facts = append(p.facts, fact{name, fmt.Sprintf(format, args...)})
}

// table adds a section; the first row holds the titles.
func (p *page) table(title, empty string, titles []string, rows [][]string) {
	s := section{title: title, empty: empty}
	if len(rows) > 0 {
		s.rows = append([][]string{titles}, rows...)
	}
	p.sections = append(p.sections, s)
}

func (p *page) print(out io.Writer) error {
	var b strings.Builder
	b.WriteString(p.title + "\n")
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
		if err := (&table{out: &b}).print(rows); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
