package plane

import (
	"strings"
	"testing"
)

func TestUnknownComponentsAreRefused(t *testing.T) {
	parts := []*component{{name: Etcd}, {name: APIServer}, {name: Springtide}}
	for _, c := range []struct{ name, want string }{
		{APIServer, ""},
		{"kube-apisever", "did you mean kube-apiserver?"},
		{Scheduler, "the plane runs etcd, kube-apiserver, springtide-scheduler"}, // which Springtide stands in for
	} {
		err := checkArgs(parts, map[string][]string{c.name: {"--v=4"}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("arguments of %s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestGatesOfVersions: each version is started with gates that it knows.
func TestGatesOfVersions(t *testing.T) {
	for v, want := range map[string]bool{"": true, "1.37": true, "1.36": false, "1.35": false, "1.34": false} {
		got := apiServerGates(v)
		if strings.Contains(got, "GenericWorkload=true") != want || !strings.Contains(got, terminatingReplicas) {
			t.Errorf("gates of %q are %s; with PodGroups: want %v", v, got, want)
		}
		for _, gone := range []string{"GangScheduling", "WorkloadAwarePreemption"} {
			if strings.Contains(got, gone) {
				t.Errorf("gates of %q have %s, which this binary does not know", v, gone)
			}
		}
	}
}
