package e2e

import (
	"fmt"
	"maps"
	"math"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/train"
	"github.com/springtide/springtide/lab/world"
)

const (
	// python is an interpreter that has PyTorch.
	python = "/usr/bin/python3"
	// checkpointEvery is the number of steps between the checkpoints of torch.yaml: the most that may ever be lost.
	checkpointEvery = 50
	// enough steps to distinguish a falling loss from a lucky one.
	enough = 60
	// workers are those of both trainers: the controller gives them room in some cycles, not in one.
	workers = 4
)

// TestTraining has two trainers work as real processes on a machine that is lent, recalled and lent again. A trainer
// with a notice saves its work, acknowledges and is evicted, in that order; the machine goes home; the workers return,
// and go on where they stopped.
func TestTraining(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the lab")
	}
	needTorch(t)
	p := &training{t: t, pids: map[int]string{}}
	t.Cleanup(func() { // after the world is closed
		for pid, pod := range p.pids {
			if syscall.Kill(pid, 0) == nil {
				t.Errorf("process %d of pod %s outlived the lab", pid, pod)
			}
		}
	})
	o := small(24 * time.Hour)
	for i := range o.Nodes {
		o.Processes = append(o.Processes, fmt.Sprintf("node-%03d", i)) // only pods with a command are run
	}
	w, s := play(t, o, p.play)
	if p.act != done {
		t.Fatalf("%s: stuck in act %d; loans: %s", w.Now().Format(time.TimeOnly), p.act, s.summary())
	}
	p.judgeRecall(w, s)
	p.judgeTorch(w)
	p.judgePS(w)
}

// needTorch fails where there is no PyTorch.
func needTorch(t *testing.T) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), python, "-c", "import torch").CombinedOutput(); err != nil {
		t.Fatalf("%s has no PyTorch (hack/debian-deps.sh train installs it): %v\n%s", python, err, said)
	}
}

// act is how far the play has come.
type act int

const (
	setting   act = iota // nothing is prepared
	ebb                  // waits for the first loan, fast
	working              // both train, at speed 1
	recalling            // the flood came and they leave, at speed 1
	returning            // waits for the next loan, fast: no worker runs
	again                // both train, at speed 1
	done
)

// training is the play of TestTraining.
type training struct {
	t     *testing.T
	act   act
	diary *diary
	began time.Time      // by the wall
	pids  map[int]string // every process that ever ran, with its pod
	// stable are the processes that have to stay, by pod; first is how many steps the parameter servers had taken at the recall.
	stable map[string]int
	first  int
}

// play looks whether the act is over, and begins the next. Time runs fast only where no worker works.
func (p *training) play(w *world.World, s *watcher) (stop bool) {
	p.t.Helper()
	for _, q := range w.Processes() {
		p.pids[q.PID] = q.Pod
	}
	was := p.act
	switch p.act {
	case setting:
		p.began, p.diary = time.Now(), watchPods(p.t, s.core)
		p.prepare(s)
		p.act = ebb
	case ebb:
		if s.in("Lent") > 0 {
			w.SetSpeed(1)
			p.begin(w, s)
			p.act = working
		}
	case working:
		if p.diary.live("worker", "runs") == workers && len(p.lines(w, "torch-worker")) >= enough && len(p.lines(w, "ps-server-0")) >= enough {
			p.stable = p.servers(w)
			s.apply("festivalplans", festival("flood", w.Now(), 3*time.Hour, s.services(), 0.6))
			p.act = recalling
		}
	case recalling:
		if n := p.diary.live("worker", "runs"); n > 0 && len(s.returned("Node")) > 0 {
			p.t.Errorf("the machine is home with %d workers on it", n)
		}
		if p.diary.live("worker", "") == 0 && len(s.returned("Node")) > 0 {
			p.first = len(p.lines(w, "ps-server-0"))
			p.diary.turn()
			p.remove(s, "festivalplans", "flood")
			w.SetSpeed(1e6)
			p.act = returning
		}
	case returning:
		if s.in("Lent") > 0 {
			w.SetSpeed(1)
			p.act = again
		}
	case again:
		if len(p.lines(w, "torch-worker")) >= enough && len(p.lines(w, "ps-server-0")) >= p.first+enough {
			p.act = done
		}
	}
	if p.act != was {
		p.t.Logf("%s (%.0f s): act %d; loans: %s; worker pods: %d",
			w.Now().Format(time.TimeOnly), time.Since(p.began).Seconds(), p.act, s.summary(), p.diary.live("worker", ""))
	}
	return p.act == done
}

// servers are the processes that have to stay.
func (p *training) servers(w *world.World) map[string]int {
	out := map[string]int{}
	for _, q := range w.Processes() {
		if !strings.Contains(q.Pod, "worker") {
			out[q.Pod] = q.PID
		}
	}
	return out
}

// lines are what the pods of a name have printed so far, those of the present turn; pods that stay are of the first one.
func (p *training) lines(w *world.World, name string) []train.Line {
	var out []train.Line
	for _, log := range p.logs(w, name) {
		if strings.Contains(name, "worker") && p.diary.turnOf(filepath.Base(filepath.Dir(log))) != p.diary.now() {
			continue
		}
		out = append(out, linesOf(p.t, log)...)
	}
	slices.SortStableFunc(out, func(a, b train.Line) int { return a.Step - b.Step })
	return out
}

// logs are the files that the pods of a name print to.
func (p *training) logs(w *world.World, name string) []string {
	p.t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.Dir(), "pods", trainingNamespace, name+"-*", "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	return logs
}

// judgeRecall holds the facts of every evicted worker against the order that is promised.
func (p *training) judgeRecall(w *world.World, s *watcher) {
	p.t.Helper()
	recalled := p.diary.of(0, "worker")
	// Replacements that waited for room while the parallelism followed were never told anything.
	recalled = slices.DeleteFunc(recalled, func(v entry) bool { return !slices.Contains(v.facts, "runs") })
	if len(recalled) != workers {
		p.t.Errorf("%d workers were recalled: want two of each trainer", len(recalled))
	}
	for _, v := range recalled {
		if got := strings.Join(v.facts, " "); got != "runs noticed acked evicted gone" {
			p.t.Errorf("pod %s: %s", v.name, got)
		}
	}
	for _, j := range list[v1alpha1.ElasticJob](s, "elasticjobs") {
		if said, err := time.Parse(time.RFC3339, j.Annotations[v1alpha1.AnnotationCheckpoint]); j.Name == "torch" && (err != nil || said.After(w.Now().Add(world.Step))) {
			p.t.Errorf("job torch says that its work was saved at %q: want a time before %s", j.Annotations[v1alpha1.AnnotationCheckpoint], w.Now())
		}
	}
	for _, l := range s.returned("Node") {
		p.t.Logf("loan %s: %s; first notice %s, clean %s", l.Name, phases(&l), l.Status.FirstNotice.Format(time.TimeOnly), l.Status.CleanTime.Format(time.TimeOnly))
	}
}

// judgeTorch holds the curve after the return against the one before the recall.
func (p *training) judgeTorch(w *world.World) {
	p.t.Helper()
	before, after := p.turns(w, "torch-worker")
	saved, resumed := last(before, train.Checkpoint), first(after, train.Resume)
	if saved == nil || resumed == nil {
		p.t.Fatalf("checkpoint %v, resume %v: want both", saved, resumed)
	}
	p.t.Logf("torch: %s, then %s: %d steps lost", saved, resumed, resumed.Lost)
	if resumed.Step != saved.Step || math.Abs(resumed.Loss-saved.Loss) > 1e-4 {
		p.t.Errorf("saved %s, resumed %s: want the same step and loss", saved, resumed)
	}
	p.savedFirst(w, saved.Step)
	if acked := last(before, train.Ack); acked == nil || acked.Step != saved.Step || resumed.Lost != 0 {
		p.t.Errorf("%d steps lost after the acknowledgement %v of what was saved at step %d: want 0", resumed.Lost, acked, saved.Step)
	}
	for _, l := range append(before, after...) {
		if l.Event == train.Resume && (l.Lost < 0 || l.Lost > checkpointEvery) {
			p.t.Errorf("%s: more than the %d steps between two checkpoints are lost", l, checkpointEvery)
		}
	}
	old, fresh := steps(before), steps(after)
	if fresh[0].Step != saved.Step+1 {
		p.t.Errorf("the first step after the return is %d, the last saved one is %d", fresh[0].Step, saved.Step)
	}
	p.t.Logf("torch: %d steps, return, %d steps; loss %s", len(old), len(fresh), curve(old, fresh))
	goesOn(p.t, "torch", old, fresh)
}

// savedFirst wants the worker that saves for all to have done so before it acknowledged.
func (p *training) savedFirst(w *world.World, step int) {
	p.t.Helper()
	at := func(lines []train.Line, event string) int {
		return slices.IndexFunc(lines, func(l train.Line) bool { return l.Event == event && l.Step == step })
	}
	saves := 0
	for _, log := range p.logs(w, "torch-worker") {
		lines := linesOf(p.t, log)
		if saved, acked := at(lines, train.Checkpoint), at(lines, train.Ack); saved >= 0 && acked >= 0 {
			saves++
			if acked < saved {
				p.t.Errorf("%s: acknowledged before the work was saved", log)
			}
		}
	}
	if saves != 1 {
		p.t.Errorf("%d workers saved and acknowledged step %d: want one", saves, step)
	}
}

// judgePS wants the servers to have stayed and the curve to be one.
func (p *training) judgePS(w *world.World) {
	p.t.Helper()
	if now := p.servers(w); len(p.stable) != 3 || !maps.Equal(now, p.stable) {
		p.t.Errorf("servers were %v and are %v: want the same three processes", p.stable, now)
	}
	all := steps(p.lines(w, "ps-server-0"))
	for i, l := range all {
		if l.Step != i+1 {
			p.t.Fatalf("step %d came where %d was due: the servers lost their parameters", l.Step, i+1)
		}
	}
	before, after := p.turns(w, "ps-worker")
	for _, l := range append(before, after...) {
		if l.Event == train.Leave && l.Lost != 0 {
			p.t.Errorf("%s: a worker leaves between two steps", l)
		}
	}
	if last(before, train.Ack) == nil || last(before, train.Leave) == nil {
		p.t.Errorf("no worker acknowledged and left: %v", before)
	}
	old, fresh := all[:p.first], all[p.first:]
	p.t.Logf("ps: %d steps, return, %d steps, 0 lost; loss %s", len(old), len(fresh), curve(old, fresh))
	goesOn(p.t, "ps", old, fresh)
}

// turns are the lines of workers before the recall and after the return.
func (p *training) turns(w *world.World, name string) (before, after []train.Line) {
	p.diary.show(0)
	before = p.lines(w, name)
	p.diary.show(1)
	return before, p.lines(w, name)
}

// port finds one that is free.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
