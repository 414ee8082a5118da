package host

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/springtide/springtide/agent/shape"
	"github.com/springtide/springtide/api/catalog"
)

// TestKubeletProtects: a kubelet that protects memory itself is left alone, every other one is not, and one that looks
// like another process gets no token.
func TestKubeletProtects(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		status       int
		own          bool // its certificate is in its directory
		tiered       bool
		says         string
	}{
		{"TieredReservation", `{"kubeletconfig":{"memoryReservationPolicy":"TieredReservation"}}`, 200, true, true, ""},
		{"with the gate named", `{"kubeletconfig":{"featureGates":{"MemoryQoS":true},"memoryReservationPolicy":"TieredReservation"}}`, 200, true, true, ""},
		{"the gate is off", `{"kubeletconfig":{"featureGates":{"MemoryQoS":false},"memoryReservationPolicy":"TieredReservation"}}`, 200, true, false, ""},
		{"None", `{"kubeletconfig":{"memoryReservationPolicy":"None"}}`, 200, true, false, ""},
		{"an older kubelet", `{"kubeletconfig":{}}`, 200, true, false, ""},
		{"no right", `Forbidden`, 403, true, false, "nodes/configz"},
		{"nonsense", `{}`, 200, true, false, "kubeletconfig"},
		{"another process", `{"kubeletconfig":{"memoryReservationPolicy":"TieredReservation"}}`, 200, false, false, "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			token := ""
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token = r.Header.Get("Authorization") + r.URL.Path
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()
			b := newBench(t, func(o *Options) { o.Node, o.API = "example.com", &rest.Config{BearerToken: "secret"} }) // the name in the test's certificate
			if c.own {
				files(t, b.roots.Kubelet, map[string]string{"pki/kubelet.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))})
			}
			b.pod("web", shape.OnlineSide, shape.Shared, 1000)
			b.learnKubelet(t.Context(), strings.TrimPrefix(server.URL, "https://"), b.now)
			says := b.kubelet.Load()
			if says.tiered != c.tiered || (says.err != nil) != (c.says != "") || says.err != nil && !strings.Contains(says.err.Error(), c.says) {
				t.Fatalf("%+v, want tiered %v, %q", says, c.tiered, c.says)
			}
			if c.own && token != "Bearer secret/configz" || !c.own && token != "" {
				t.Errorf("the server got %q", token)
			}
			out := b.cycle()
			if low := b.read("kubepods", "memory.low"); (low == "0") != c.tiered {
				t.Errorf("kubepods/memory.low is %s", low)
			}
			if got := b.capability(out, catalog.CapProtection); got.OK == c.tiered {
				t.Errorf("%+v", got)
			}
			if c.tiered { // what the kubelet writes then stays
				files(t, b.roots.Cgroup, map[string]string{"kubepods/memory.low": "12345"})
				b.Protect(t.Context(), nil, b.now)
				if got := b.read("kubepods", "memory.low"); got != "12345" {
					t.Errorf("the agent wrote %s over the kubelet's", got)
				}
			}
		})
	}
	n := &corev1.Node{}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "m"}, {Type: corev1.NodeInternalIP, Address: "fd00::1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	if got := kubeletAddress(n); got != "[fd00::1]:10250" {
		t.Error(got)
	}
	if got := kubeletAddress(&corev1.Node{}); got != "" {
		t.Error(got)
	}
}

// TestKubeletIsAskedSeldom: once in ten minutes, sooner after it did not answer, and after it reset what the agent wrote.
func TestKubeletIsAskedSeldom(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"kubeletconfig":{}}`))
	}))
	defer server.Close()
	b := newBench(t, func(o *Options) { o.Node, o.API = "example.com", &rest.Config{BearerToken: "secret"} })
	files(t, filepath.Join(b.roots.Kubelet, "pki"), map[string]string{"kubelet.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))})
	ask := func(after time.Duration) {
		b.learnKubelet(t.Context(), strings.TrimPrefix(server.URL, "https://"), noon.Add(after))
	}
	ask(0)
	ask(time.Minute)
	ask(9 * time.Minute)
	if asked != 1 {
		t.Fatalf("asked %d times", asked)
	}
	b.protectionReset.Store(true)
	ask(9*time.Minute + time.Second)
	ask(9*time.Minute + 2*time.Second)
	ask(20 * time.Minute)
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}
