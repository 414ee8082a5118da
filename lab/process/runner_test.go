package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/springtide/springtide/api/v1alpha1"
)

// labNow is the cluster's time in these tests, far from the wall's.
var labNow = time.Date(2026, 6, 4, 1, 0, 0, 0, time.UTC)

// stage is a runner on an API server that is played.
type stage struct {
	*Runner
	t    *testing.T
	core *fake.Clientset
	dyn  *dynamicfake.FakeDynamicClient
}

func newStage(t *testing.T) *stage {
	t.Helper()
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ElasticJob"))
	job.SetNamespace("training")
	job.SetName("bert")
	kinds := map[schema.GroupVersionResource]string{v1alpha1.GroupVersion.WithResource("elasticjobs"): "ElasticJobList"}
	s := &stage{t: t, core: fake.NewClientset(), dyn: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, job)}
	var err error
	s.Runner, err = New(Options{
		Core: s.core, Dynamic: s.dyn, Dir: t.TempDir(), Now: func() time.Time { return labNow }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run makes a pod and shows it to the runner.
func (s *stage) run(p *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	if _, err := s.core.CoreV1().Pods(p.Namespace).Create(s.t.Context(), p, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.Seen(p)
	return p
}

// await reads the pod until it is as wanted; nil stands for a pod that is gone.
func (s *stage) await(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	s.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		p, err := s.core.CoreV1().Pods("training").Get(s.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			p, err = nil, nil
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if is(p) {
			return p
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("pod %s is never %s: %+v", name, what, p)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == phase }
}

func gone(p *corev1.Pod) bool { return p == nil }

// deletedPod is the pod as it is once it is deleted.
func deletedPod(p *corev1.Pod, graceSeconds int64) *corev1.Pod {
	p = p.DeepCopy()
	now := metav1.Now()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &graceSeconds
	return p
}

func (s *stage) log(p *corev1.Pod) string {
	data, err := os.ReadFile(s.logOf(p))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

func (s *stage) awaitLog(p *corev1.Pod, text string) {
	s.t.Helper()
	s.await(p.Name, "printing "+text, func(*corev1.Pod) bool {
		data, _ := os.ReadFile(s.logOf(p))
		return strings.Contains(string(data), text)
	})
}

func TestPodEndsByItself(t *testing.T) {
	for _, c := range []struct {
		script string
		phase  corev1.PodPhase
		code   int32
	}{{"echo hello; exit 0", corev1.PodSucceeded, 0}, {"exit 3", corev1.PodFailed, 3}, {"kill -9 $$", corev1.PodFailed, 137}} {
		s := newStage(t)
		p := s.run(podOf("/bin/sh", "-c", c.script))
		got := s.await("w", string(c.phase), inPhase(c.phase))
		end := got.Status.ContainerStatuses[0].State.Terminated
		if end == nil || end.ExitCode != c.code || !end.FinishedAt.Time.Equal(labNow) || !got.Status.StartTime.Time.Equal(labNow) {
			t.Errorf("%s: %+v, started %s: want code %d, by the cluster's clock", c.script, end, got.Status.StartTime, c.code)
		}
		if c.code == 0 && s.log(p) != "hello\n" {
			t.Errorf("log %q", s.log(p))
		}
	}
}

func TestPodThatCannotStart(t *testing.T) {
	s := newStage(t)
	s.run(podOf("/no/such/command"))
	if got := s.await("w", "failed", inPhase(corev1.PodFailed)); !strings.Contains(got.Status.Message, "/no/such/command") {
		t.Errorf("message %q does not name the command", got.Status.Message)
	}
}

// TestDeletedPod wants SIGTERM for the command, the status of its end, and then no pod.
func TestDeletedPod(t *testing.T) {
	s := newStage(t)
	p := s.run(podOf("/bin/sh", "-c", `trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done`))
	s.awaitLog(p, "up")
	if got := s.await("w", "running", inPhase(corev1.PodRunning)); got.Status.ContainerStatuses[0].State.Running == nil {
		t.Errorf("status %+v", got.Status)
	}
	if ps := s.Processes(); len(ps) != 1 || ps[0].Pod != "w" || syscall.Kill(ps[0].PID, 0) != nil {
		t.Errorf("processes %+v", ps)
	}
	s.Seen(deletedPod(p, 600))
	s.await("w", "gone", gone)
	if got := s.log(p); got != "up\nbye\n" {
		t.Errorf("log %q", got)
	}
	if ps := s.Processes(); len(ps) != 0 {
		t.Errorf("processes %+v are left", ps)
	}
}

// TestStubbornPod wants a command that ignores SIGTERM, and what it started, to be killed after the grace.
func TestStubbornPod(t *testing.T) {
	s := newStage(t)
	p := s.run(podOf("/bin/sh", "-c", `trap '' TERM; sleep 600 & echo child $!; echo up; while :; do sleep 600; done`))
	s.awaitLog(p, "up")
	s.Seen(deletedPod(p, 0))
	s.await("w", "gone", gone)
	ended(t, child(t, s.log(p)))
}

// TestLeftBehind wants what a command leaves behind to go with it.
func TestLeftBehind(t *testing.T) {
	s := newStage(t)
	p := s.run(podOf("/bin/sh", "-c", `sleep 600 & echo child $!`))
	s.await("w", "succeeded", inPhase(corev1.PodSucceeded))
	ended(t, child(t, s.log(p)))
}

// TestLostPod wants the process of a pod that is gone without a word to be killed.
func TestLostPod(t *testing.T) {
	s := newStage(t)
	p := s.run(podOf("/bin/sh", "-c", `echo child $$; exec sleep 600`))
	s.awaitLog(p, "child")
	if err := s.core.CoreV1().Pods("training").Delete(t.Context(), "w", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Lost(p.UID)
	ended(t, child(t, s.log(p)))
}

func child(t *testing.T, log string) int {
	t.Helper()
	_, rest, _ := strings.Cut(log, "child ")
	number, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("no child in log %q", log)
	}
	return pid
}

// ended waits for the end of a process; a zombie that no process waits for has ended.
func ended(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

// TestNoticeAndAnswers plays a recall: the notice appears in the file with its deadline by the machine's clock, and the answers reach the
// annotations by the cluster's.
func TestNoticeAndAnswers(t *testing.T) {
	s := newStage(t)
	p := podOf("/bin/sh", "-c", `echo up; until [ -s /notices/notice ]; do sleep 0.02; done; cat /notices/notice; echo
		date -u -d '+90 seconds' +%Y-%m-%dT%H:%M:%SZ >/answers/heartbeat; date -u +%Y-%m-%dT%H:%M:%SZ >/answers/checkpoint; echo 4 >/answers/ack; sleep 600`)
	p.Labels[JobLabel] = "bert"
	emptyDir(p, AnswersVolume, "/answers")
	downward(p, "notices", "/notices", "notice", "metadata.annotations['springtide.dev/notice']")
	s.run(p)
	s.awaitLog(p, "up")
	noticed := p.DeepCopy()
	noticed.Annotations[v1alpha1.AnnotationNotice] = `{"loan":"l","epoch":4,"deadline":"` + labNow.Add(2*time.Minute).Format(time.RFC3339) + `"}`
	asked := time.Now()
	s.Seen(noticed)
	got := s.await("w", "acknowledged", func(p *corev1.Pod) bool {
		return p.Annotations[v1alpha1.AnnotationAck] == "4" && p.Annotations[v1alpha1.AnnotationHeartbeat] != ""
	})
	near(t, "heartbeat", got.Annotations[v1alpha1.AnnotationHeartbeat], labNow.Add(90*time.Second))
	var shown struct{ Deadline string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(s.log(p), "up\n")), &shown); err != nil {
		t.Fatalf("%v: log %q", err, s.log(p))
	}
	near(t, "deadline", shown.Deadline, asked.Add(2*time.Minute))
	s.await("w", "announcing its checkpoint", func(*corev1.Pod) bool {
		job, err := s.dyn.Resource(v1alpha1.GroupVersion.WithResource("elasticjobs")).Namespace("training").Get(context.Background(), "bert", metav1.GetOptions{})
		return err == nil && job.GetAnnotations()[v1alpha1.AnnotationCheckpoint] != ""
	})
}

// TestNoticeStaysAsItWasShown looks at a notice twice while the clocks run apart.
func TestNoticeStaysAsItWasShown(t *testing.T) {
	p := podOf("true")
	downward(p, "notices", "/notices", "notice", "metadata.annotations['springtide.dev/notice']")
	l, err := layOut(p, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	deadline := func(minutes int, wall time.Time) string {
		t.Helper()
		p.Annotations[v1alpha1.AnnotationNotice] = `{"deadline":"` + labNow.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339) + `"}`
		if err := l.show(p, clocks{wall: wall, lab: labNow}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(l.notes[0].path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	wall := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	first := deadline(2, wall)
	if again := deadline(2, wall.Add(9*time.Second)); again != first {
		t.Errorf("%s became %s", first, again)
	}
	if moved := deadline(3, wall.Add(9*time.Second)); moved != `{"deadline":"2030-01-01T00:03:09Z"}` {
		t.Errorf("the deadline that moved is shown as %s", moved)
	}
}

// near wants a time within the minute that a slow machine may take.
func near(t *testing.T, what, text string, want time.Time) {
	t.Helper()
	got, err := time.Parse(time.RFC3339, text)
	if err != nil || got.Sub(want).Abs() > time.Minute {
		t.Errorf("%s %q, %v: want about %s", what, text, err, want)
	}
}

func TestNoticeHere(t *testing.T) {
	c := clocks{wall: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), lab: labNow}
	for text, want := range map[string]string{
		`{"deadline":"2026-06-04T01:02:00Z","epoch":7,"loan":"l"}`: `{"deadline":"2030-01-01T00:02:00Z","epoch":7,"loan":"l"}`,
		`{"deadline":"soon"}`: `{"deadline":"soon"}`,
		`hello`:               `hello`,
		``:                    ``,
	} {
		if got := noticeHere(text, c); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := c.there(c.here(labNow.Add(time.Hour))); !got.Equal(labNow.Add(time.Hour)) {
		t.Errorf("there and back is %s", got)
	}
}

// TestNothingOutlivesTheLab kills a process that runs a pod, as a lab that is killed; the pod's processes must go too.
func TestNothingOutlivesTheLab(t *testing.T) {
	if os.Getenv(inHelper) != "" {
		t.Skip("the helper runs one test")
	}
	lab := exec.Command(os.Args[0], "-test.run=^TestLabForKilling$", "-test.v")
	lab.Env = append(os.Environ(), inHelper+"="+t.TempDir())
	out, err := lab.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "child %d", &pid)
	}
	if err := lab.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = lab.Wait() // killed
	if pid == 0 {
		t.Fatal("the helper ran no pod")
	}
	ended(t, pid)
}

// TestALabThatDiesAsAPodStartsLeavesNothing: the lab is killed after the process was made and before the reaper heard
// of it. Nothing of the pod runs.
func TestALabThatDiesAsAPodStartsLeavesNothing(t *testing.T) {
	if os.Getenv(inHelper) != "" {
		t.Skip("the helper runs one test")
	}
	dir := t.TempDir()
	lab := exec.Command(os.Args[0], "-test.run=^TestLabForKilling$", "-test.v")
	lab.Env = append(os.Environ(), inHelper+"="+dir, dyingHelper+"=1")
	out, err := lab.CombinedOutput()
	if err == nil || lab.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the helper should be killed as its pod starts: %v: %s", err, out)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "group"))
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = killGroup(group) }) // where the test fails
	ended(t, group)
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the pod's command ran")
	}
}

// dying is a pipe to the reaper whose lab is killed as it writes.
type dying struct {
	io.WriteCloser
	dir string
}

func (d dying) Write(p []byte) (int, error) {
	_ = os.WriteFile(filepath.Join(d.dir, "group"), []byte(strings.TrimPrefix(string(p), "+ ")), 0o600)
	time.Sleep(time.Second) // for a command that does not wait
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// inHelper is set in the process that TestNothingOutlivesTheLab kills.
const inHelper = "SPRINGTIDE_TEST_LAB_DIR"

// dyingHelper is set where that process is to die as its pod starts.
const dyingHelper = "SPRINGTIDE_TEST_LAB_DYING"

// TestLabForKilling is the body of that process.
func TestLabForKilling(t *testing.T) {
	if os.Getenv(inHelper) == "" {
		t.Skip("for TestNothingOutlivesTheLab")
	}
	s := newStage(t)
	s.o.Dir = filepath.Join(os.Getenv(inHelper), "pods")
	if dir := os.Getenv(inHelper); os.Getenv(dyingHelper) != "" {
		s.reaper.in = dying{s.reaper.in, dir}
		s.run(podOf("/bin/sh", "-c", "echo >"+filepath.Join(dir, "ran")+"; sleep 600"))
		time.Sleep(time.Minute)
	}
	p := s.run(podOf("/bin/sh", "-c", `sleep 600 & echo child $!; wait`))
	s.awaitLog(p, "child")
	fmt.Printf("child %d\n", child(t, s.log(p)))
	time.Sleep(time.Minute)
}
