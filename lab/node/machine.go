package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/springtide/springtide/lab/plane"
)

// The machine: two sockets of two dies of two cores, and a NUMA node for each die. The memory is shared out to the NUMA nodes.
const (
	CPUs      = 8
	Sockets   = 2
	NUMANodes = 4
	MemoryMiB = 3072
)

// guestPort is where the guest program listens.
const guestPort = 7000

// answerTimeout bounds one first request to the guest; it is tried again until the caller's context ends.
const answerTimeout = 10 * time.Second

// Options say how a machine runs.
type Options struct {
	// Dir is a directory of its own for the machine's disk, serial line and monitor; it must exist and is the caller's.
	Dir string
	// MemoryMiB is the guest's memory, MemoryMiB of the package when 0. With a size other than the snapshot's the
	// machine boots, which takes longer. Memory that the guest does not use is not taken from this machine.
	MemoryMiB int
}

// Machine is a running virtual machine.
type Machine struct {
	dir     string
	ports   ports
	systemd bool // its init, and the kubelet's cgroup driver
	client  *http.Client
	pid     int
	ended   chan struct{}
	err     error // how QEMU ended; read it after ended
}

// ports of this machine's loopback that QEMU forwards to the guest: to the guest program, and to the kubelet, which listens on the same port.
type ports struct{ guest, kubelet int }

// Start continues from the image's snapshot and returns when the guest answers and has this machine's time. Machines of one image may run
// side by side, and none leaves anything in the image.
func Start(ctx context.Context, img Image, o Options) (*Machine, error) {
	if o.MemoryMiB == 0 || o.MemoryMiB == MemoryMiB {
		o.MemoryMiB = MemoryMiB
		return start(ctx, img, o, true)
	}
	m, err := start(ctx, img, o, false)
	if err != nil {
		return nil, err
	}
	if err := m.prepare(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func start(ctx context.Context, img Image, o Options, fromSnapshot bool) (*Machine, error) {
	free, err := plane.FreePorts(2)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	m := &Machine{
		dir: dir, ports: ports{guest: free[0], kubelet: free[1]}, systemd: img.systemd, ended: make(chan struct{}),
		// A kept connection would not survive a snapshot.
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	if fromSnapshot {
		err = copyFile(filepath.Join(img.dir, snapshotFile), filepath.Join(dir, diskFile))
	} else {
		_, err = output(ctx, dir, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", filepath.Join(img.dir, diskFile), diskFile)
	}
	if err != nil {
		return nil, err
	}
	if err := m.run(arguments(img, m.ports, o.MemoryMiB, fromSnapshot)); err != nil {
		return nil, err
	}
	if err := m.awaitGuest(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// run starts QEMU. The kernel sends the parent-death signal when the thread that forked ends, and Go may end a thread at any time: so one
// goroutine keeps its thread for as long as the machine runs.
func (m *Machine) run(args []string) error {
	path, err := tool("qemu-system-x86_64")
	if err != nil {
		return err
	}
	logs, err := os.Create(filepath.Join(m.dir, "qemu.log"))
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, logs, logs
	// A group of its own keeps the terminal's Ctrl-C away: the machine ends after what uses it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = logs.Close() // QEMU holds its own copy
		started <- err
		if err == nil {
			m.err = cmd.Wait()
			close(m.ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	m.pid = cmd.Process.Pid
	return nil
}

// arguments of QEMU. Files have names relative to the machine's directory: a Unix socket's address has room for about a hundred bytes.
func arguments(img Image, p ports, memoryMiB int, fromSnapshot bool) []string {
	forward := func(host, guest int) string { return fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", host, guest) }
	args := []string{
		"-machine", "pc", "-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "max", "-m", strconv.Itoa(memoryMiB),
		"-smp", "8,sockets=2,dies=2,cores=2,threads=1",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(img.dir, kernelFile), "-initrd", filepath.Join(img.dir, initramfs),
		// tsc=reliable: otherwise the guest takes HPET, and each look at the clock leaves the guest, which doubles every time.
		"-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all psi=1 mitigations=off random.trust_cpu=on nowatchdog tsc=reliable",
		"-drive", "file=" + diskFile + ",if=virtio,format=qcow2,cache=unsafe",
		"-netdev", "user,id=n0" + forward(p.guest, guestPort) + forward(p.kubelet, p.kubelet),
		"-device", "virtio-net-pci,netdev=n0", "-device", "virtio-rng-pci",
		"-serial", "file:serial.log", "-monitor", "unix:" + monitorSocket + ",server=on,wait=off",
	}
	for n := range NUMANodes {
		args = append(args,
			"-object", fmt.Sprintf("memory-backend-ram,id=m%d,size=%dM,reserve=off", n, memoryMiB/NUMANodes),
			"-numa", fmt.Sprintf("node,nodeid=%d,memdev=m%d,cpus=%d-%d", n, n, 2*n, 2*n+1))
	}
	for a := range NUMANodes {
		for b := range NUMANodes {
			distance := 21
			switch {
			case a == b:
				distance = 10
			case a/2 == b/2:
				distance = 11
			}
			args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", a, b, distance))
		}
	}
	if fromSnapshot {
		args = append(args, "-loadvm", snapshotName)
	}
	return args
}

// awaitGuest waits for the guest program and sets the clock: a snapshot's time stood still.
func (m *Machine) awaitGuest(ctx context.Context) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, answerTimeout)
		err := m.SetClock(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-m.ended:
			return fmt.Errorf("QEMU ended: %w%s", m.err, m.Tail())
		case <-ctx.Done():
			return fmt.Errorf("the guest does not answer: %w%s", err, m.Tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Join lets the kubelet register under an identity of a plane, with labels of the node. The caller waits until the node is Ready.
func (m *Machine) Join(ctx context.Context, id plane.NodeIdentity, labels map[string]string) error {
	config, err := files.ReadFile("files/kubelet.yaml")
	if err != nil {
		return err
	}
	if m.systemd {
		config = []byte(withSystemd(string(config)))
	}
	config = append(config, fmt.Sprintf("port: %d\n", m.ports.kubelet)...)
	args := "--hostname-override=" + id.Name
	for k, v := range labels {
		args += " --node-labels=" + k + "=" + v
	}
	if err := m.Forward(ctx, net.JoinHostPort(plane.ServiceAddress, "443"), id.Server); err != nil {
		return fmt.Errorf("forward the API server's service: %w", err)
	}
	// The kubelet starts when it finds its arguments, so these are the last.
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"ca.crt", id.Authority}, {"kubelet.crt", id.Cert}, {"kubelet.key", id.Key}, {"kubeconfig", id.Kubeconfig}, {"kubelet.yaml", config}, {"kubelet.args", []byte(args + "\n")},
	} {
		if err := m.Put(ctx, "/etc/kubernetes/"+f.name, 0o600, bytes.NewReader(f.data)); err != nil {
			return err
		}
	}
	return nil
}

// Forward takes connections to an address of the guest to another one, as kube-proxy would. Pods reach no address outside of the guest otherwise: nothing
// translates theirs.
func (m *Machine) Forward(ctx context.Context, from, to string) error {
	_, err := m.do(ctx, http.MethodPut, "/forward?from="+from+"&to="+to, nil)
	return err
}

// CadvisorURL is where the kubelet serves the usage of containers, on this machine's loopback.
func (m *Machine) CadvisorURL() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(m.ports.kubelet)) + "/metrics/cadvisor"
}

// prepare waits for containerd and gives it the images of the disk. A snapshot is taken after it.
func (m *Machine) prepare(ctx context.Context) error {
	_, err := m.Run(ctx, `until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done
for f in /images/*.tar; do ctr -n k8s.io images import --local $f || exit 1; done
rm /images/*.tar`)
	return err
}

// LoadImage puts the images of an OCI archive into the machine's runtime.
func (m *Machine) LoadImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	const to = "/images/loaded.tar"
	if err := m.Put(ctx, to, 0o644, file); err != nil {
		return err
	}
	_, err = m.Run(ctx, "ctr -n k8s.io images import --local "+to+" && rm "+to)
	return err
}

// TagImage gives an image of the machine's runtime another name.
func (m *Machine) TagImage(ctx context.Context, from, to string) error {
	_, err := m.Run(ctx, "ctr -n k8s.io images tag "+from+" "+to)
	return err
}

// Run runs a shell script in the guest and returns what it printed; it fails when the script does.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	body, err := m.do(ctx, http.MethodPost, "/run", strings.NewReader(script))
	if err != nil {
		return "", err
	}
	var result struct {
		Code int
		Out  string
	}
	if err := json.Unmarshal(body, &result); err != nil {
		return "", err
	}
	if result.Code != 0 {
		return result.Out, fmt.Errorf("a script in the guest ended with %d: %s", result.Code, result.Out)
	}
	return result.Out, nil
}

// Put writes a file in the guest, at once under its name.
func (m *Machine) Put(ctx context.Context, path string, mode os.FileMode, data io.Reader) error {
	_, err := m.do(ctx, http.MethodPut, fmt.Sprintf("/file?mode=%o&path=%s", mode, url.QueryEscape(path)), data)
	return err
}

// Get reads a file of the guest, for example of /sys/fs/cgroup.
func (m *Machine) Get(ctx context.Context, path string) (string, error) {
	body, err := m.do(ctx, http.MethodGet, "/file?path="+url.QueryEscape(path), nil)
	return strings.TrimSpace(string(body)), err
}

// Clock reads the guest's clock.
func (m *Machine) Clock(ctx context.Context) (time.Time, error) {
	body, err := m.do(ctx, http.MethodGet, "/clock", nil)
	if err != nil {
		return time.Time{}, err
	}
	ns, err := strconv.ParseInt(string(body), 10, 64)
	return time.Unix(0, ns), err
}

// SetClock gives the guest this machine's time.
func (m *Machine) SetClock(ctx context.Context) error {
	_, err := m.do(ctx, http.MethodPut, "/clock", strings.NewReader(strconv.FormatInt(time.Now().UnixNano(), 10)))
	return err
}

func (m *Machine) do(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d%s", m.ports.guest, path), body)
	if err != nil {
		return nil, err
	}
	response, err := m.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the guest answers %s to %s %s: %s", response.Status, method, path, data)
	}
	return data, err
}

// Ended is closed when QEMU has ended, however that came.
func (m *Machine) Ended() <-chan struct{} { return m.ended }

// Stop ends the machine at once, as a power cut does. It may be called more than once.
func (m *Machine) Stop() error {
	select {
	case <-m.ended:
		return nil
	default:
	}
	if err := syscall.Kill(m.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end QEMU: %w", err)
	}
	<-m.ended
	return nil
}

// Tail is the end of what QEMU and the guest's kernel printed.
func (m *Machine) Tail() string {
	var out strings.Builder
	for _, name := range []string{"qemu.log", "serial.log"} {
		if data, err := os.ReadFile(filepath.Join(m.dir, name)); err == nil && len(data) > 0 {
			fmt.Fprintf(&out, "\n%s: %s", name, data[max(0, len(data)-2000):])
		}
	}
	return out.String()
}
