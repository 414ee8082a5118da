package doctor

import (
	"strings"
	"testing"

	"github.com/springtide/springtide/internal/cli/clitest"
)

// TestDoctorOfGangs: PodGroups that are not served, that are served, and an API server that drops the field of pods all the same.
func TestDoctorOfGangs(t *testing.T) {
	for want, with := range map[string]func(*clitest.World){
		"gangs by PodGroups are off in this cluster":                             func(*clitest.World) {},
		"PodGroups are served at scheduling.k8s.io/v1alpha2\n":                   func(w *clitest.World) { w.Old(t); w.KeepGroups(true) },
		"PodGroups are served at scheduling.k8s.io/v1alpha2, and the API server": func(w *clitest.World) { w.Old(t); w.KeepGroups(false) },
	} {
		w := newWorld(t)
		with(w)
		if got := w.Run("doctor"); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
