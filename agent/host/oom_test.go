package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
)

// score is what a process has.
func (b *bench) score(pid string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.roots.Proc, pid, "oom_score_adj"))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// reclaimed makes a reclaimed pod with one process.
func (b *bench) reclaimed(name, pid string, oom int) {
	b.t.Helper()
	p := b.pod(name, shape.OverlapSide, shape.Reclaimed, 0)
	p.Terms.OOMPriority = oom
	files(b.t, b.roots.Proc, map[string]string{pid + "/oom_score_adj": "1000"})
	files(b.t, filepath.Join(b.roots.Cgroup, b.path(p)), map[string]string{name + "-c/cgroup.procs": pid, "sandbox/cgroup.procs": "99"})
	files(b.t, b.roots.Proc, map[string]string{"99/oom_score_adj": "-998"})
	b.group(b.path(p) + "/sandbox")
	files(b.t, filepath.Join(b.roots.Cgroup, b.path(p)), map[string]string{"sandbox/cgroup.procs": "99"})
}

func (b *bench) capability(out *Outcome, kind string) Capability {
	b.t.Helper()
	for _, c := range out.Capabilities {
		if c.Type == kind {
			return c
		}
	}
	b.t.Fatalf("no condition %s", kind)
	return Capability{}
}

// TestRunningPodsFollowTheOrder: the processes of running pods have the scores of their pods, also after an annotation or the set of pods changed. The pod's
// sandbox keeps the kubelet's.
func TestRunningPodsFollowTheOrder(t *testing.T) {
	b := newBench(t)
	b.reclaimed("first", "101", -10)
	b.reclaimed("last", "102", 10)
	want := func(what, first, last string) {
		t.Helper()
		out := b.cycle()
		if b.score("101") != first || b.score("102") != last || b.score("99") != "-998" {
			t.Errorf("%s: first has %s, last %s, the sandbox %s", what, b.score("101"), b.score("102"), b.score("99"))
		}
		if c := b.capability(out, catalog.CapOOMOrder); !c.OK {
			t.Errorf("%s: %+v", what, c)
		}
	}
	want("as they came", "1000", "901")
	b.facts.Pods[0].Terms.OOMPriority = 20
	want("an annotation changed", "901", "1000")
	b.facts.Pods[1].Priority = 5
	want("a priority changed", "1000", "901")
	// A container that started again has the score of its creation, here an older one.
	files(t, b.roots.Proc, map[string]string{"103/oom_score_adj": "1000"})
	b.group(b.path(&b.facts.Pods[1]) + "/last-2")
	b.facts.Pods[1].Containers["last-2"] = "more"
	files(t, filepath.Join(b.roots.Cgroup, b.path(&b.facts.Pods[1])), map[string]string{"last-2/cgroup.procs": "103"})
	b.cycle()
	if got := b.score("103"); got != "901" {
		t.Errorf("a new container has %s", got)
	}
}

// TestHiddenProcesses: where the agent cannot see or write the processes of pods, the condition names what to do, and the rest goes on.
func TestHiddenProcesses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b *bench)
		says   string
		ok     bool
	}{
		{"another process namespace", func(b *bench) {
			files(t, filepath.Join(b.roots.Cgroup, b.path(&b.facts.Pods[0])), map[string]string{"first-c/cgroup.procs": "0"})
		}, "set hostPID", false},
		{"no capability", func(b *bench) {
			file := filepath.Join(b.roots.Proc, "101/oom_score_adj")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/proc/version", file); err != nil {
				t.Fatal(err)
			}
		}, "SYS_RESOURCE", false},
		{"the process ended", func(b *bench) {
			if err := os.RemoveAll(filepath.Join(b.roots.Proc, "101")); err != nil {
				t.Fatal(err)
			}
		}, "follow", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.reclaimed("first", "101", -10)
			b.reclaimed("last", "102", 10)
			c.change(b)
			out := b.cycle()
			if got := b.capability(out, catalog.CapOOMOrder); got.OK != c.ok || !strings.Contains(got.Message, c.says) {
				t.Errorf("%+v", got)
			}
			if got := b.score("102"); got != "901" {
				t.Errorf("the other pod has %s", got)
			}
		})
	}
}
