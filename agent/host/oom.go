package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/springtide/springtide/agent/shape"
)

// oomOrder is the order in which the kernel ends processes of reclaimed pods, as it was written last.
type oomOrder struct {
	// written is what was done for a pod: its score and its containers.
	written map[string]string
	// err says why running pods keep the order that they started with.
	err error
}

// orderOOM brings the processes of running pods to their pods' scores. New containers start with them, by the runtime. A pod is looked at when its score or its
// containers changed; processes inherit the score of their parent.
func (a *Agent) orderOOM(f *Facts, in *shape.Input) {
	scores := shape.OOMScores(in.Pods)
	was := a.oom.written
	a.oom = oomOrder{written: map[string]string{}}
	for i := range f.Pods { // the input begins with the pods of the facts
		p := &in.Pods[i]
		score, ok := scores[p.UID]
		if !ok || p.Path == "" {
			continue
		}
		var ids []string
		var paths []string
		for _, c := range p.Containers {
			if _, named := f.Pods[i].Containers[c.ID]; named { // the sandbox's own process is not the pod's work
				ids, paths = append(ids, c.ID), append(paths, c.Path)
			}
		}
		key := fmt.Sprint(score, ids)
		if was[p.UID] == key {
			a.oom.written[p.UID] = key
			continue
		}
		if err := a.setOOM(paths, score); err != nil {
			a.oom.err = fmt.Errorf("pod %s keeps the order that it started with: %w", p.Name, err)
			continue
		}
		a.oom.written[p.UID] = key
	}
}

// setOOM gives the processes of some cgroups a score.
func (a *Agent) setOOM(paths []string, score int) error {
	want := strconv.Itoa(score)
	for _, path := range paths {
		pids, err := a.cgroups.Processes(path)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			if pid == 0 {
				return errNotVisible
			}
			file := filepath.Join(a.o.Roots.Proc, strconv.Itoa(pid), "oom_score_adj")
			data, err := os.ReadFile(file)
			if err == nil && strings.TrimSpace(string(data)) == want {
				continue
			}
			if err == nil {
				err = os.WriteFile(file, []byte(want), 0)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) { // it ended meanwhile
				return fmt.Errorf("%w; to fix: give the agent SYS_RESOURCE and DAC_OVERRIDE, as the component deploy/base/agent/hostpid and the chart's agent.hostPID do", err)
			}
		}
	}
	return nil
}

// errNotVisible says that the kernel hides the processes of pods.
var errNotVisible = errors.New("processes of pods are not visible; to fix: set hostPID, as the component deploy/base/agent/hostpid and the chart's agent.hostPID do")
