package plane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Addresses of QEMU's user network, the same for every machine: the machine itself, and this machine's loopback as the guest sees it.
const (
	GuestAddress = "10.0.2.15"
	HostAddress  = "10.0.2.2"
)

// ServiceAddress is the cluster IP of the API server's own service, the first one of the service range.
const ServiceAddress = "10.96.0.1"

// guests is the network of QEMU's machines. It exists inside of each QEMU process alone.
var guests = netip.MustParsePrefix("10.0.2.0/24")

// gatewayDial bounds the connection to a kubelet; QEMU accepts at once, whatever the guest does.
const gatewayDial = 10 * time.Second

// gateway is how the API server reaches kubelets in QEMU machines, as konnectivity is on a cluster whose nodes are behind a firewall. It is an
// HTTP proxy that knows CONNECT, on a Unix socket in the plane's directory. QEMU forwards a port of this machine's loopback to the same
// port of the guest, so the port that a kubelet listens on names its machine.
type gateway struct {
	server *http.Server
}

// gatewayConfig is the API server's configuration. The socket's path is relative to the plane's directory, where the API server runs: a
// Unix socket's address has room for about a hundred bytes.
const gatewaySocket = "nodes.sock"

const gatewayConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: ` + gatewaySocket + "\n"

// newGateway serves until close.
func newGateway(dir string) (*gateway, error) {
	listener, err := listenUnix(dir, gatewaySocket)
	if err != nil {
		return nil, fmt.Errorf("open the gateway to the nodes: %w", err)
	}
	g := &gateway{server: &http.Server{Handler: http.HandlerFunc(tunnel), ReadHeaderTimeout: gatewayDial}}
	go func() { _ = g.server.Serve(listener) }() // it ends by close; each connection has reported its own error
	return g, nil
}

func (g *gateway) close() error { return g.server.Close() }

// listenUnix opens a socket in a directory whose path may be too long for a socket's address.
func listenUnix(dir, name string) (net.Listener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
	if err != nil {
		return nil, err
	}
	// The file goes with the directory; by this name it would not be found again.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l, os.Chmod(filepath.Join(dir, name), 0o600)
}

// DialUnix connects to a socket in a directory whose path may be too long for a socket's address.
func DialUnix(ctx context.Context, dir, name string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
}

// tunnel answers CONNECT: bytes go both ways until one side ends.
func tunnel(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this is a gateway: it answers CONNECT alone", http.StatusMethodNotAllowed)
		return
	}
	to, err := net.DialTimeout("tcp", reach(r.Host), gatewayDial)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = to.Close() // nothing was sent yet
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = errors.Join(from.Close(), to.Close())
		return
	}
	pipe(from, buffered.Reader, to)
}

// reach is where an address is on this machine.
func reach(address string) string {
	if a, err := netip.ParseAddrPort(address); err == nil && guests.Contains(a.Addr()) {
		return netip.AddrPortFrom(netip.MustParseAddr(loopback), a.Port()).String()
	}
	return address
}

// pipe copies both ways. When one direction ends, both connections are closed, so the other one ends too: nothing that the API server asks
// of a kubelet goes on after one side has hung up.
func pipe(from net.Conn, first *bufio.Reader, to net.Conn) {
	end := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(to, first)
		end <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(from, to)
		end <- struct{}{}
	}()
	<-end
	_ = errors.Join(from.Close(), to.Close())
	<-end
}
