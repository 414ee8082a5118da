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
