package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/springtide/springtide/lab/train"
)

// TestTrainingCrash kills one of two members between two checkpoints, without a word, on no lab at all: the other goes on alone from the last
// checkpoint, and what is lost is not more than the steps since then.
func TestTrainingCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	needTorch(t)
	dir, rendezvous := t.TempDir(), "--rendezvous="+port(t)
	member(t, dir, "meet", "meet", rendezvous)
	killed := member(t, dir, "a", "launch", rendezvous, "--max=2", "--pause=0.02")
	member(t, dir, "b", "launch", rendezvous, "--max=2", "--pause=0.02")

	between := func(l train.Line) bool {
		return l.Event == train.Step && l.World == 2 && l.Step > checkpointEvery && l.Step%checkpointEvery > 5
	}
	awaitLine(t, dir, "two members between two checkpoints", between)
	if err := killed.Process.Kill(); err != nil { // the agent alone: its worker must not go on without it
		t.Fatal(err)
	}
	got := awaitLine(t, dir, "one member that goes on", func(l train.Line) bool { return l.Event == train.Resume && l.World == 1 })
	t.Logf("after the crash: %s", got)
	if got.Step%checkpointEvery != 0 || got.Step == 0 || got.Lost < 1 || got.Lost > checkpointEvery {
		t.Errorf("%s: want the last multiple of %d, and what came after it lost", got, checkpointEvery)
	}
	awaitLine(t, dir, "the curve to go on", func(l train.Line) bool {
		return l.Event == train.Step && l.World == 1 && l.Step > got.Step+got.Lost
	})
}

// member starts one process of the PyTorch trainer and kills its group with the test.
func member(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	answers := filepath.Join(dir, name)
	if err := os.MkdirAll(answers, 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(answers, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	script, err := filepath.Abs("../lab/train/elastic.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, append([]string{"-u", script}, append(args, "--checkpoints="+dir, "--answers="+answers, "--notice="+filepath.Join(answers, "notice"))...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // gone already is as good
		_ = cmd.Wait()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", name, said[max(0, len(said)-3000):])
		}
	})
	return cmd
}

// awaitLine waits for a line of some member.
func awaitLine(t *testing.T, dir, what string, is func(train.Line) bool) train.Line {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, name := range []string{"a", "b"} {
			for _, l := range linesOf(t, filepath.Join(dir, name, "log")) {
				if is(l) {
					return l
				}
			}
		}
	}
	t.Fatalf("waited in vain for %s", what)
	return train.Line{}
}
