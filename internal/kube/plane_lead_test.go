//go:build plane

package kube

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/kubetest"
	"github.com/springtide/springtide/internal/kube/object"
)

// oldLeader names the Deployment that the process of TestOldLeaderProcess writes to.
const oldLeader = "SPRINGTIDE_TEST_OLD_LEADER"

// writtenBy is an annotation that the controller's account may write, and does not.
const writtenBy = "springtide.dev/test-written-by"

// TestPlaneWokenLeader stops the process of a leader by a signal, lets another leader take over, and wakes the first,
// which has writes to do that depend on nothing: none arrives. The new leader has stamped what moves before its work
// began.
func TestPlaneWokenLeader(t *testing.T) {
	p := newPlane(t)
	ctx, id := t.Context(), "woken-"+rand.String(5)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: id}}
	d.Spec.Replicas = new(int32)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": id}}
	d.Spec.Template = kubetest.Template("1")
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Containers[0].Image = "none"
	if _, err := p.core.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := kubetest.Service(id)
	s.Namespace = "default"
	p.create(t, object.GVRServices, s)
	p.machineOf(t, id, "web")
	// A loan that was just created has no status yet.
	begun, moves, rests := kubetest.Loan("begun-"+id, "n-"+id, "", 2, 0), kubetest.Loan("moves-"+id, "n-"+id, "", 2,
		1), kubetest.Loan("rests-"+id, "n-"+id, "", 2, 2)
	for l, phases := range map[*v1alpha1.Loan][]string{begun: nil, moves: {"Emptying"}, rests: {"Emptying", "Lent"}} {
		p.create(t, object.GVRLoans, l)
		for i, phase := range phases {
			u, err := p.dyn.Resource(object.GVRLoans).Get(ctx, l.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made, err := object.Decode[v1alpha1.Loan](u)
			if err != nil {
				t.Fatal(err)
			}
			made.Status.Phase, made.Status.Epoch = phase, int64(i+1)
			if err := p.putStatus(t, object.GVRLoans, made); err != nil {
				t.Fatal(err)
			}
		}
	}
	share := kubetest.NodeShare("n-"+id, moves.Name, "web-"+id, "batch-"+id, 1, false, 1)
	share.Spec.LeaderEpoch = 0
	p.create(t, object.GVRShares, share)
	annotations := func() map[string]string {
		d, err := p.core.AppsV1().Deployments("default").Get(ctx, id, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Annotations
	}
	epochOf := func(gvr schema.GroupVersionResource, name string) int64 {
		t.Helper()
		u, err := p.dyn.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return election.EpochOn(u)
	}

	old := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestOldLeaderProcess$", "-test.timeout=4m")
	old.Env = append(os.Environ(), oldLeader+"="+id)
	old.Stderr = os.Stderr
	in, err := old.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := old.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Process.Kill(); _ = old.Wait() })
	said := bufio.NewScanner(out)
	hear := func(word string) []string {
		t.Helper()
		var instead []string
		for said.Scan() {
			if f := strings.Fields(said.Text()); len(f) > 0 && f[0] == word {
				return f[1:]
			}
			instead = append(instead, said.Text())
		}
		t.Fatalf("the old leader ended before it said %q, and said: %q", word, instead)
		return nil
	}
	first, err := strconv.ParseInt(hear("leading")[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	before := annotations()
	if before[writtenBy] != "first" || epochIn(before) != fmt.Sprint(first) {
		t.Fatalf("the first leader of epoch %d left %v", first, before)
	}

	if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	lead(t, p) // after the lease ran out
	if p.Leads().Epoch <= first {
		t.Fatalf("epoch %d follows %d", p.Leads().Epoch, first)
	}
	if got := epochIn(annotations()); got != fmt.Sprint(p.Leads().Epoch) {
		t.Errorf("the target carries epoch %s when the work of epoch %d begins", got, p.Leads().Epoch)
	}
	for name, of := range map[string]schema.GroupVersionResource{begun.Name: object.GVRLoans,
		moves.Name: object.GVRLoans, "n-" + id: object.GVRShares, "web-" + id: object.GVRPools} {
		if got := epochOf(of, name); got != p.Leads().Epoch {
			t.Errorf("%s %s carries epoch %d when the work of epoch %d begins", object.KindOf(of), name, got, p.Leads().Epoch)
		}
	}
	if got := epochOf(object.GVRLoans, rests.Name); got != 0 {
		t.Errorf("the loan at rest carries epoch %d as well", got)
	}
	// The word lies there when the process wakes.
	if _, err := fmt.Fprintln(in, "go"); err != nil {
		t.Fatal(err)
	}
	if err := old.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := hear("passed"); got[0] != "0" {
		t.Errorf("%s of %s writes of the woken leader passed", got[0], got[2])
	}
	if got := annotations()[writtenBy]; got != "first" {
		t.Errorf("the woken leader wrote %q", got)
	}
}

// epochIn is the epoch of the stamp among annotations.
func epochIn(annotations map[string]string) string {
	epoch, _, _ := strings.Cut(annotations[v1alpha1.AnnotationLeaderEpoch], "/")
	return epoch
}

// TestOldLeaderProcess is the process of the first leader in TestPlaneWokenLeader.
func TestOldLeaderProcess(t *testing.T) {
	id := os.Getenv(oldLeader)
	if id == "" {
		t.Skip("TestPlaneWokenLeader starts it")
	}
	p := newPlane(t)
	write := func(ctx context.Context, text string) error {
		body := object.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{writtenBy: text}}})
		_, err := p.rooms.Core.AppsV1().Deployments("default").Patch(ctx, id, types.MergePatchType, body,
			object.PatchOptions())
		return err
	}
	err := p.Lead(t.Context(), func(ctx context.Context, epoch int64) error {
		if err := write(ctx, "first"); err != nil {
			return err
		}
		fmt.Println("leading", epoch)
		if !bufio.NewScanner(os.Stdin).Scan() {
			return context.Cause(ctx)
		}
		// The work's writes in spite of a context that ended.
		passed, tries := 0, 0
		for ; tries < 100 || ctx.Err() == nil; tries++ {
			if write(context.WithoutCancel(ctx), "late") == nil {
				passed++
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println("passed", passed, "of", tries)
		return nil
	})
	fmt.Println("over", err)
}
