package explain

import (
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestTideWithoutAModel: where no model has seen enough of a service, no number of replicas is shown.
func TestTideWithoutAModel(t *testing.T) {
	for _, model := range []string{"none", ""} {
		st := &v1alpha1.ElasticServiceStatus{FloorReplicas: 5, Tide: &v1alpha1.TideStatus{Model: model, PeakReplicas: 5}}
		if got, want := tideText(st, "0.95"), "none yet: no model has seen enough of this service"; got != want {
			t.Errorf("model %q: %q, want %q", model, got, want)
		}
	}
}
