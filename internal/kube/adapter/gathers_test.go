package adapter

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Operators that begin once all are ready are not given more to wait for: until the launcher, or what comes after, is there.
func TestGathers(t *testing.T) {
	launched := func(state string) any { return map[string]any{"Launcher": map[string]any{state: int64(1)}} }
	status := func(name string, ready int64) any { return []any{map[string]any{"name": name, "ready": ready}} }
	inOrder := func(order string) func(u *unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { set(t, u, "spec/startupPolicy/startupPolicyOrder", order) }
	}
	depends := func(u *unstructured.Unstructured, on string) {
		first := u.Object["spec"].(map[string]any)["replicatedJobs"].([]any)[0].(map[string]any)["name"]
		set(t, u, "spec/replicatedJobs/1/dependsOn", []any{map[string]any{"name": first, "status": on}})
	}
	for _, c := range []struct {
		what, file string
		part       int
		bend       func(u *unstructured.Unstructured)
		want       bool
	}{
		{"an MPIJob that launches at once", "mpijob", 0, func(*unstructured.Unstructured) {}, false},
		{"an MPIJob that waits for its workers", "mpijob", 0, func(u *unstructured.Unstructured) {
			set(t, u, "spec/launcherCreationPolicy", "WaitForWorkersReady")
		}, true},
		{"its launcher runs", "mpijob", 0, func(u *unstructured.Unstructured) {
			set(t, u, "spec/launcherCreationPolicy", "WaitForWorkersReady")
			set(t, u, "status/replicaStatuses", launched("active"))
		}, false},
		{"its launcher failed and comes again", "mpijob", 0, func(u *unstructured.Unstructured) {
			set(t, u, "spec/launcherCreationPolicy", "WaitForWorkersReady")
			set(t, u, "status/replicaStatuses", launched("failed"))
		}, false},
		{"the first of a JobSet in any order", "jobset", 0, inOrder("AnyOrder"), false},
		{"the first of a JobSet in order", "jobset", 0, inOrder("InOrder"), true},
		{"the last of a JobSet in order", "jobset", 1, inOrder("InOrder"), false},
		{"the first, once the next is there", "jobset", 0, func(u *unstructured.Unstructured) {
			inOrder("InOrder")(u)
			set(t, u, "status/replicatedJobsStatus", status("workers", 1))
		}, false},
		{"one that the next needs ready", "jobset", 0, func(u *unstructured.Unstructured) { depends(u, "Ready") }, true},
		{"one that the next needs complete", "jobset", 0, func(u *unstructured.Unstructured) { depends(u, "Complete") }, false},
	} {
		u := load(t, c.file)
		c.bend(u)
		if w := adapterOf(t, u).Read(u); w.Parts[c.part].Gathers != c.want {
			t.Errorf("%s: gathers %t, want %t", c.what, w.Parts[c.part].Gathers, c.want)
		}
	}
}

// A launcher that works as a worker does is a host, and its processes count in Horovod's bounds.
func TestALauncherThatWorks(t *testing.T) {
	u := load(t, "mpijob")
	plain := adapterOf(t, u).Read(u)
	set(t, u, "spec/runLauncherAsWorker", true)
	works := adapterOf(t, u).Read(u)
	for _, c := range []struct {
		what        string
		plain, work int32
	}{
		{"min", plain.Part("worker").Min.Value, works.Part("worker").Min.Value},
		{"max", plain.Part("worker").Max.Value, works.Part("worker").Max.Value},
	} {
		if c.plain < 1 || c.work != c.plain-1 {
			t.Errorf("%s in workers: %d, and %d next to a launcher that works", c.what, c.plain, c.work)
		}
	}
	if plain.Part("launcher").IsHost || !works.Part("launcher").IsHost || works.Part("worker").IsHost {
		t.Error("the launcher is a host where it works, and nowhere else")
	}
}
