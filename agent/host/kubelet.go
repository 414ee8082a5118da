package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/api/catalog"
)

// kubeletSays is what the kubelet's configuration says of the protection of memory.
type kubeletSays struct {
	// tiered: the kubelet writes memory.min and memory.low itself.
	tiered bool
	// err is why it is not known. Then the agent writes, as every kubelet but one that was configured so leaves it to others.
	err error
}

const (
	// kubeletEvery is how often the kubelet is asked, kubeletRetry how soon again after it did not answer or reset what the agent wrote.
	kubeletEvery = 10 * time.Minute
	kubeletRetry = 30 * time.Second
	// kubeletAnswer bounds what is read of an answer.
	kubeletAnswer = 1 << 20
)

// kubeletAddress is where the kubelet of a node serves; empty where the node does not say.
func kubeletAddress(n *corev1.Node) string {
	port := n.Status.DaemonEndpoints.KubeletEndpoint.Port
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && port > 0 {
			return net.JoinHostPort(a.Address, strconv.Itoa(int(port)))
		}
	}
	return ""
}

// askKubelet reads the kubelet's configuration. The kubelet is known by a certificate of the cluster's authority, or by the one that it signed itself and
// keeps in its directory: the agent's token goes to no other process.
func (a *Agent) askKubelet(ctx context.Context, address string) kubeletSays {
	if a.o.API == nil || address == "" {
		return kubeletSays{err: errors.New("the node does not say where its kubelet serves")}
	}
	c := rest.CopyConfig(a.o.API)
	c.Host, c.APIPath = "https://"+address, ""
	if c.CAData == nil && c.CAFile != "" {
		data, err := os.ReadFile(c.CAFile)
		if err != nil {
			return kubeletSays{err: err}
		}
		c.CAData = data
	}
	c.CAFile, c.Insecure, c.ServerName = "", false, a.o.Node
	own, err := os.ReadFile(filepath.Join(a.o.Roots.Kubelet, "pki", "kubelet.crt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kubeletSays{err: err}
	}
	c.CAData = append(append(append([]byte(nil), c.CAData...), '\n'), own...)
	c.Timeout = apiTimeout
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return kubeletSays{err: err}
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Host+"/configz", nil)
	if err != nil {
		return kubeletSays{err: err}
	}
	answer, err := client.Do(request)
	if err != nil {
		return kubeletSays{err: fmt.Errorf("ask the kubelet for its configuration: %w", err)}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return kubeletSays{err: fmt.Errorf("the kubelet does not show its configuration (%s); to fix: let the agent get nodes/configz", answer.Status)}
	}
	var said struct {
		Config *struct {
			FeatureGates            map[string]bool `json:"featureGates"`
			MemoryReservationPolicy string          `json:"memoryReservationPolicy"`
		} `json:"kubeletconfig"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, kubeletAnswer)).Decode(&said); err != nil || said.Config == nil {
		return kubeletSays{err: fmt.Errorf("the kubelet's configuration cannot be read: %w", errors.Join(err, errors.New("it has no kubeletconfig")))}
	}
	on, set := said.Config.FeatureGates["MemoryQoS"]
	return kubeletSays{tiered: said.Config.MemoryReservationPolicy == "TieredReservation" && (on || !set)}
}

// learnKubelet asks the kubelet when that is due. It runs on the reporter's goroutine: a kubelet that hangs must not hold the machine up.
func (a *Agent) learnKubelet(ctx context.Context, address string, now time.Time) {
	if !a.o.Knobs.Protect {
		return
	}
	last := a.kubelet.Load()
	every := kubeletEvery
	if last == nil || last.err != nil || a.protectionReset.Load() {
		every = kubeletRetry
	}
	if now.Sub(a.kubeletAsked) < every {
		return
	}
	a.kubeletAsked = now
	a.protectionReset.Store(false)
	says := a.askKubelet(ctx, address)
	a.kubelet.Store(&says)
}

// protection says who protects the memory of online.
func (a *Agent) protection() Capability {
	says := a.kubelet.Load()
	switch {
	case !a.o.Knobs.Protect:
		return without(catalog.ProtectionAvailable, lacks(catalog.ProtectionOff))
	case says != nil && says.tiered:
		return without(catalog.ProtectionAvailable, lacks(catalog.KubeletProtects))
	case !a.has(catalog.CapMemoryBox):
		return without(catalog.ProtectionAvailable, lacks(catalog.NothingProtected))
	}
	return with(catalog.ProtectionAvailable)
}
