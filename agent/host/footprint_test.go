package host

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// footprintTime is how long the agent's process is watched after it has settled.
const footprintTime = 60 * time.Second

// BenchmarkFootprint runs the agent's own binary with its API client: a real API server, 200 pods of two containers, one socket lent, an injected
// machine of which nothing changes. It reports the memory and the share of a core that the process has, and what it writes to the API server
// besides its Lease.
func BenchmarkFootprint(b *testing.B) {
	f := newFixture(b)
	m := newBench(b)
	f.create(b, "nodeshares", &v1alpha1.NodeShare{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeShare"}, ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Spec: v1alpha1.NodeShareSpec{NodeUID: string(f.uid), Parcels: []v1alpha1.ShareParcel{{Cells: []int32{2, 3}, Holder: "batch", LoanName: "l", LoanUID: "u", Epoch: 1}}}})
	for i := range 200 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%03d", i), Namespace: "default"}, Spec: corev1.PodSpec{NodeName: "m", AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "a", Image: "none"}, {Name: "b", Image: "none"}}}}
		parent := "kubepods/besteffort/pod"
		if i%5 != 2 {
			parent = "kubepods/burstable/pod"
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
		}
		if i%5 == 1 {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: v1alpha1.TaintHolder, Operator: corev1.TolerationOpExists}}
		}
		var made *corev1.Pod
		eventually(b, "the default account", func() bool {
			var err error
			made, err = f.core.CoreV1().Pods("default").Create(b.Context(), pod, metav1.CreateOptions{})
			return err == nil
		})
		for _, c := range []string{"", "/a", "/b"} {
			m.group(parent + string(made.UID) + c)
		}
	}
	m.settle()
	process := f.startAgent(b, m)
	// The kernel's part, until nothing changes: what is effective follows what was written.
	for range 5 {
		time.Sleep(3 * time.Second)
		m.settle()
	}
	cpu, writes := process.cpu(b), process.writes(b)
	for b.Loop() {
		time.Sleep(footprintTime)
	}
	b.ReportMetric(100*(process.cpu(b)-cpu).Seconds()/(float64(b.N)*footprintTime.Seconds()), "%core")
	b.ReportMetric(process.residentMiB(b), "MiB-resident")
	b.ReportMetric(process.writes(b)-writes, "API-writes")
}

// agentProcess is a running agent.
type agentProcess struct {
	pid int
	url string
}

// startAgent runs the agent's binary on a machine of files until the benchmark ends.
func (f *fixture) startAgent(b *testing.B, m *bench) *agentProcess {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "springtide-agent")
	build := exec.CommandContext(b.Context(), "go", "build", "-ldflags", "-s -w", "-o", binary, "../../cmd/springtide-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		b.Fatal(err)
	}
	config := filepath.Join(b.TempDir(), "agent.yaml")
	text := fmt.Sprintf("kubeconfig: %q\nnode: m\nlisten: %q\ncgroupRoot: %q\nsysRoot: %q\nprocRoot: %q\nkubeletRoot: %q\nstateDir: %q\nnriSocket: \"\"\n",
		f.Kubeconfig(), address, m.roots.Cgroup, m.roots.Sys, m.roots.Proc, m.roots.Kubelet, m.roots.State)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary, "--config="+config)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=56MiB") // as in the manifest
	cmd.Stderr = b.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &agentProcess{pid: cmd.Process.Pid, url: "http://" + address + "/metrics"}
	eventually(b, "the agent's first cycle", func() bool { return p.sum(b, "springtide_agent_cycle_seconds_count") > 0 })
	return p
}

// sum adds the series of a metric, but for those of Leases.
func (p *agentProcess) sum(b *testing.B, name string) float64 {
	b.Helper()
	response, err := http.Get(p.url)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	total := 0.0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if n, _, _ := strings.Cut(series, "{"); n != name || strings.Contains(series, `kind="Lease"`) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += v
	}
	return total
}

func (p *agentProcess) writes(b *testing.B) float64 {
	b.Helper()
	return p.sum(b, "springtide_agent_api_writes_total")
}

func (p *agentProcess) cpu(b *testing.B) time.Duration {
	b.Helper()
	return time.Duration(p.sum(b, "process_cpu_seconds_total") * float64(time.Second))
}

func (p *agentProcess) residentMiB(b *testing.B) float64 {
	b.Helper()
	return p.sum(b, "process_resident_memory_bytes") / (1 << 20)
}
