package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/springtide/springtide/agent/shape"
)

// resctrlClass is the agent's own class; a class of the same name by another tool would be taken over.
const resctrlClass = "springtide-reclaimed"

// resctrl puts reclaimed work into a class of cache and memory bandwidth. NRI's runtimes drop the class in updates, so the files are written.
type resctrl struct{ root string }

func (r resctrl) text(path string) string {
	data, err := os.ReadFile(filepath.Join(r.root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// info reads what the machine offers; false where there is no resctrl.
func (r resctrl) info() (shape.ResctrlInfo, bool) {
	s := sysfs(r)
	i := shape.ResctrlInfo{Root: r.text("schemata"), MinBits: s.number("info/L3/min_cbm_bits", 1),
		BandwidthGranule: s.number("info/MB/bandwidth_gran", 10), BandwidthMin: s.number("info/MB/min_bandwidth", 10)}
	return i, i.Root != ""
}

// confine makes the class say what is wanted and brings the threads of some cgroups into it. It reports how many threads it moved. Threads that
// ended meanwhile are no error; a second call moves none.
func (r resctrl) confine(c *Cgroups, paths []string, cache, bandwidth int) (int, error) {
	info, ok := r.info()
	if !ok {
		return 0, errors.New("no resctrl is mounted")
	}
	want, err := info.Schemata(cache, bandwidth)
	if err != nil || want == "" {
		return 0, err
	}
	dir := filepath.Join(r.root, resctrlClass)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, fmt.Errorf("make the class of reclaimed work: %w", err)
	}
	has := map[string]bool{}
	for line := range strings.Lines(r.text(resctrlClass + "/schemata")) {
		has[strings.TrimSpace(line)] = true
	}
	for line := range strings.SplitSeq(want, "\n") {
		if !has[line] {
			if err := writeExisting(filepath.Join(dir, "schemata"), line+"\n"); err != nil {
				return 0, fmt.Errorf("limit reclaimed work to %s: %w", line, err)
			}
		}
	}
	in := map[string]bool{}
	for field := range strings.FieldsSeq(r.text(resctrlClass + "/tasks")) {
		in[field] = true
	}
	moved := 0
	for _, path := range paths {
		text, _ := c.Read(path, "cgroup.threads")
		for id := range strings.FieldsSeq(text) {
			if id == "0" {
				return moved, errors.New("threads of other process namespaces are not visible; to fix: set hostPID, as the component deploy/base/agent/hostpid and the chart's agent.hostPID do")
			}
			if in[id] {
				continue
			}
			err := writeExisting(filepath.Join(dir, "tasks"), id+"\n")
			switch {
			case err == nil:
				moved++
			case strings.Contains(err.Error(), "no such process"):
			default:
				return moved, fmt.Errorf("put thread %s into the class of reclaimed work: %w", id, err)
			}
		}
	}
	return moved, nil
}

// writeExisting appends to a file that is there: each write to a file of resctrl is a command of its own.
func writeExisting(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
