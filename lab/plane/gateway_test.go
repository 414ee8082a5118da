package plane

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGatewayReachesForwardedPorts asks for an address inside of a QEMU machine and gets what listens on the same port of loopback, in a
// directory whose path is longer than a socket's address may be.
func TestGatewayReachesForwardedPorts(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	kubelet := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "kubelet") })}
	go func() { _ = kubelet.Serve(l) }()
	t.Cleanup(func() { _ = kubelet.Close() })

	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := newGateway(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.close() })

	_, port, _ := net.SplitHostPort(l.Addr().String())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return connect(ctx, dir, address)
	}}}
	resp, err := client.Get("http://" + net.JoinHostPort(GuestAddress, port) + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "kubelet" {
		t.Errorf("through the gateway came %q, %v", body, err)
	}
	if _, err := connect(t.Context(), dir, net.JoinHostPort(GuestAddress, "1")); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("a port that nothing is forwarded from: %v, want 502", err)
	}
}

// connect is what the API server does: CONNECT through the socket.
func connect(ctx context.Context, dir, address string) (net.Conn, error) {
	c, err := DialUnix(ctx, dir, gatewaySocket)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, "CONNECT "+address+" HTTP/1.1\r\nHost: "+address+"\r\n\r\n"); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close() // after CONNECT the connection is the tunnel
	if resp.StatusCode != http.StatusOK {
		return nil, &net.OpError{Op: "connect", Err: &net.AddrError{Err: resp.Status, Addr: address}}
	}
	return c, nil
}
