// Package examine asks a cluster a list of questions and prints what was found. doctor and upgrade check share it, with the questions that both ask.
package examine

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/screen"
	"github.com/springtide/springtide/internal/cli/usage"
)

// Finding is one answer of the doctor.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	// Fix says what to do; empty when all is well.
	Fix string `json:"mend,omitempty"`
}

// Severity distinguishes what keeps Springtide from working from what only makes it work less well.
type Severity string

// The severities, from the least.
const (
	Fine    Severity = "OK"
	Advice  Severity = "Advice"
	Problem Severity = "Problem"
)

// Examination is a list of questions to one cluster, and what they found.
type Examination struct {
	Clients   *cluster.Clients
	Namespace string
	Store     string
	Found     []Finding
}

// Check is one question to the cluster.
type Check struct {
	Name string
	Run  func(context.Context, *Examination) error
}

// Examine runs checks. A check that fails is a finding like any other: the rest still runs.
func (d *Examination) Examine(ctx context.Context, checks []Check) {
	for _, check := range checks {
		before := len(d.Found)
		if err := check.Run(ctx, d); err != nil {
			d.Found = append(d.Found, Finding{check.Name, Problem, err.Error(), "see the message; then run springtide doctor again"})
		}
		for i := before; i < len(d.Found); i++ {
			d.Found[i].Check = check.Name
		}
	}
}

// OK adds a finding that all is well.
func (d *Examination) OK(format string, args ...any) {
	d.Found = append(d.Found, Finding{Severity: Fine, Message: fmt.Sprintf(format, args...)})
}

// Advise adds a finding that does not count as a problem, with what to do.
func (d *Examination) Advise(fix, format string, args ...any) {
	d.Found = append(d.Found, Finding{Severity: Advice, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// Report adds a problem, with what to do.
func (d *Examination) Report(fix, format string, args ...any) {
	d.Found = append(d.Found, Finding{Severity: Problem, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// Print writes the findings. It fails where one is a problem.
func (d *Examination) Print(out io.Writer, format string) error {
	problems := 0
	for _, f := range d.Found {
		if f.Severity == Problem {
			problems++
		}
	}
	if format != "table" {
		if err := screen.Encode(out, format, d.Found); err != nil {
			return err
		}
	} else {
		var b strings.Builder
		for _, f := range d.Found {
			fmt.Fprintf(&b, "%-8s %-13s %s\n", f.Severity, f.Check, f.Message)
			if f.Fix != "" {
				fmt.Fprintf(&b, "%-8s %-13s -> %s\n", "", "", strings.ReplaceAll(f.Fix, "\n", "\n"+strings.Repeat(" ", 26)))
			}
		}
		if _, err := io.WriteString(out, b.String()); err != nil {
			return err
		}
	}
	if problems > 0 {
		return usage.Found("%s", cell.Count(problems, "problem"))
	}
	return nil
}
