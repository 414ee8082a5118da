package host

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// PrintDiff shows what a cycle would write, and why.
func PrintDiff(out *Outcome, w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, x := range out.Writes {
		old := x.Old
		if old == "" {
			old = `""`
		}
		if _, err := fmt.Fprintf(t, "%s/%s\t%s\t-> %s\t# %s\n", x.Path, x.File, old, x.New, x.Why); err != nil {
			return err
		}
	}
	for _, s := range out.Skips {
		if _, err := fmt.Fprintf(t, "%s/%s\tskipped\t\t# the file is not there\n", s.Path, s.File); err != nil {
			return err
		}
	}
	for _, p := range out.Problems {
		if _, err := fmt.Fprintf(t, "# %s\n", p); err != nil {
			return err
		}
	}
	if len(out.Writes) == 0 {
		if _, err := fmt.Fprintln(t, "nothing to write"); err != nil {
			return err
		}
	}
	return t.Flush()
}
