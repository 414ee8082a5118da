package adapter

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// minRestarts is the least budget of restarts that a resize may be charged to. Each plan, so each minute, may resize a job while the tide turns: an
// hour in the evening and one in the morning are 120 a day, and a week of training should not end by that.
const minRestarts = 1000

// minDeadline is the least life of a job in seconds: its clock runs while members wait for lent room, as Horovod's driver waits.
const minDeadline = int64(minElasticTimeout / time.Second)

// refuseDeadline judges a deadline by its path, where there is one.
func refuseDeadline(out *[]fleet.Problem, o object, path, where string) {
	if steps := strings.Split(path, "."); o.has(steps...) {
		judgeDeadline(out, int64(o.number(0, steps...)), path, where)
	}
}

func judgeDeadline(out *[]fleet.Problem, seconds int64, setting, where string) {
	if seconds < minDeadline {
		refuse(out, catalog.DeadlineTooShort, setting, where, seconds, minDeadline)
	}
}

// vouched reports whether the owner of a workload answers for what its command lines say: they may stand in a script of
// the image, where they cannot be read.
func vouched(annotations map[string]string) bool {
	return annotations[v1alpha1.AnnotationElasticSettings] == v1alpha1.ElasticSettingsVouched
}

// judgeLaunchers looks for launchers in the command lines of all parts, and holds what they say against each part. The launcher of a ring
// often stands in another part than its members: mpirun in a task of one pod, and workers that do no more than wait for it. hostsOf names
// the pods of a part.
func (w *Workload) judgeLaunchers(hostsOf func(*Part) podHosts) {
	lines := make([]command, len(w.Parts))
	for i := range w.Parts {
		lines[i] = commandOf(w.Parts[i].Template)
	}
	for i := range w.Parts {
		p, hosts := &w.Parts[i], hostsOf(&w.Parts[i])
		for k, c := range lines {
			switch q := &w.Parts[k]; {
			case c.runs("horovodrun"):
				p.judgeHorovod(c, q.Template, 0, w.whose(p, q))
			case k != i && c.runs("mpirun", "mpiexec", "orterun"):
				refuse(&p.Refusals, catalog.LauncherNotElastic, w.whose(p, q), v1alpha1.AnnotationElasticSettings,
					v1alpha1.ElasticSettingsVouched)
			case c.runsTorch():
				if t := torchrunOf(c, q.Template); k == i || t.joint() {
					p.Refusals = append(p.Refusals, torchRefusals(t, w.whose(p, q))...)
					p.judgeEndpoint(t, k == i, hosts, w.whose(p, q))
				}
			}
		}
		if lines[i].runsTorch() {
			lo, hi := torchrunOf(lines[i], p.Template).bounds(w.peers(i, lines))
			p.bind(lo, hi)
		}
	}
}

// whose names the command line of part q in a sentence about part p.
func (w *Workload) whose(p, q *Part) string {
	if p == q {
		return w.What
	}
	return q.Name + " of " + w.What
}

// peers counts the members of other parts that meet those of part i: torchrun counts them all.
func (w *Workload) peers(i int, lines []command) int32 {
	var n int32
	for k, c := range lines {
		if k != i && c.runsTorch() && torchrunOf(c, w.Parts[k].Template).joint() {
			n += w.Parts[k].Size
		}
	}
	return n
}

// bind narrows a part's bounds; the stricter one stands.
func (p *Part) bind(lo, hi Bound) {
	if lo.Field != "" && (p.Min.Field == "" || lo.Value > p.Min.Value) {
		p.Min = lo
	}
	if hi.Field != "" && (p.Max.Field == "" || hi.Value < p.Max.Value) {
		p.Max = hi
	}
}

// podHosts are the names that pods of a part have in DNS: the prefix and an index, in a domain. None without a prefix.
type podHosts struct{ prefix, domain string }

// has reports whether a host is surely one of the pods. A name in another domain than theirs is a service that happens to be called alike.
func (h podHosts) has(host string) bool {
	first, rest, dotted := strings.Cut(host, ".")
	index, ok := strings.CutPrefix(first, h.prefix)
	if h.prefix == "" || !ok || index == "" || strings.Trim(index, "0123456789") != "" {
		return false
	}
	domain, _, _ := strings.Cut(rest, ".")
	return !dotted || domain == h.domain
}

// command are the words of the command lines of a pod's containers.
type command []string

// commandOf splits at blanks also within an argument, since a command line often is one argument of a shell.
func commandOf(spec *corev1.PodSpec) command {
	if spec == nil {
		return nil
	}
	var c command
	for i := range spec.Containers {
		for _, part := range slices.Concat(spec.Containers[i].Command, spec.Containers[i].Args) {
			c = append(c, strings.Fields(strings.ReplaceAll(part, "\\\n", " "))...)
		}
		c = append(c, shellEnds[0])
	}
	return c
}

// runs reports whether one of some programs is named, with or without its path.
func (c command) runs(programs ...string) bool {
	return slices.ContainsFunc(c, func(w string) bool { return slices.Contains(programs, path.Base(w)) })
}

// own are the words of a launcher: those that follow it, up to the program that it starts or the end of the shell's command, since flags of others may be
// called like its own. Where it is not named all words are, as a script may hand them on to it.
func (c command) own(starts func(word string) bool) command {
	if !slices.ContainsFunc(c, starts) {
		return c
	}
	var out command
	inside := false
	for i, w := range c {
		switch {
		case starts(w):
			inside = true
		case slices.Contains(shellEnds, w) || inside && c.program(i):
			inside = false
		case inside:
			out = append(out, w)
		}
	}
	return out
}

// shellEnds end a command in a shell; commandOf ends those of a container by the first.
var shellEnds = []string{";", "&&", "||", "|", "&"}

// flagsAlone are flags of torchrun without a value: what follows them is a flag, or the program.
var flagsAlone = []string{"--standalone", "-m", "--module", "--no-python", "--no_python", "--run-path", "--run_path", "--use-env", "--use_env"}

// program reports whether a word is what a launcher starts, by its looks: an interpreter, a script that is no flag's value, or what follows a flag that has none.
func (c command) program(i int) bool {
	w, before := strings.Trim(c[i], `"';`), c[i-1]
	switch {
	case slices.Contains(flagsAlone, before):
		return !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "$")
	case strings.TrimRight(path.Base(w), ".0123456789") == "python":
		return true
	}
	return slices.Contains([]string{".py", ".sh"}, path.Ext(w)) && !strings.HasPrefix(w, "-") && (!strings.HasPrefix(before, "-") || strings.Contains(before, "="))
}

// flagValues reads the values of a flag that takes several, which follow after blanks; the last such flag stands, as with flag.
func (c command) flagValues(n int, name string) []string {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i] == name {
			return c[i+1 : min(i+1+n, len(c))]
		}
	}
	return nil
}

// flag reads the value of a flag by some spellings, whether it follows after a blank or a '='. Of several the last stands, as launchers take it.
func (c command) flag(names ...string) (string, bool) {
	for i, w := range slices.Backward(c) {
		name, value, inline := strings.Cut(w, "=")
		if !slices.Contains(names, name) {
			continue
		}
		switch {
		case inline:
			return value, true
		case i+1 < len(c):
			return c[i+1], true
		}
		return "", true
	}
	return "", false
}

func (c command) flagOr(otherwise string, names ...string) string {
	if v, ok := c.flag(names...); ok {
		return v
	}
	return otherwise
}

// env reads a variable of the containers; values from elsewhere (a secret, a field) cannot be read and count as absent.
func env(spec *corev1.PodSpec, name string) string {
	for i := range spec.Containers {
		for _, e := range spec.Containers[i].Env {
			if e.Name == name {
				return e.Value
			}
		}
	}
	return ""
}

func number(s string, otherwise int32) int32 {
	n, err := strconv.ParseInt(strings.Trim(s, `"'`), 10, 32)
	if err != nil {
		return otherwise
	}
	return int32(n)
}

func orNone(s string) string {
	if s == "" {
		return "not given"
	}
	return s
}
