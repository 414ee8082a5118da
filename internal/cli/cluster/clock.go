package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/clock"
)

// labPatience is how long a lab's clock has to answer.
const labPatience = 5 * time.Second

// ofLab is what the context of a kubeconfig says of a lab; empty for every other cluster.
func ofLab(raw *clientcmdapi.Config, name string) (clock.Lab, error) {
	var lab clock.Lab
	if name == "" {
		name = raw.CurrentContext
	}
	c := raw.Contexts[name]
	if c == nil {
		return lab, nil
	}
	u, ok := c.Extensions[clock.LabExtension].(*runtime.Unknown)
	if !ok {
		return lab, nil
	}
	if err := json.Unmarshal(u.Raw, &lab); err != nil {
		return lab, fmt.Errorf("extension %s of context %s: %w", clock.LabExtension, name, err)
	}
	return lab, nil
}

// Clocks are what commands know of time; no command asks for it in another way.
type Clocks struct {
	// Now is the clock that the controller uses: what our objects, the journal and the forecasts say is in it.
	Now func() time.Time
	// At brings a stamp of the API server, a kubelet, a scheduler or a recorder of events, which know the wall alone, into that clock.
	At func(time.Time) time.Time
	// Wall is this machine's clock, in which Leases live.
	Wall func() time.Time
}

// WallClocks are those of every cluster that is no lab.
func WallClocks() Clocks {
	return Clocks{Now: time.Now, At: func(t time.Time) time.Time { return t }, Wall: time.Now}
}

// clocksOf are those of a lab, where the kubeconfig names one.
func clocksOf(lab clock.Lab) (Clocks, error) {
	out := WallClocks()
	if lab.Clock == "" {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), labPatience)
	defer cancel()
	r, err := clock.Watch(ctx, lab.Clock)
	if err != nil {
		return out, fmt.Errorf("the lab of this kubeconfig does not answer: %w: has it ended?", err)
	}
	out.Now, out.At = r.Now, r.At
	return out, nil
}

// Stamped prints a stamp of the wall in the controller's time.
func (c Clocks) Stamped(t time.Time) string {
	if t.IsZero() {
		return cell.None
	}
	return cell.Stamp(&metav1.Time{Time: c.At(t)})
}
