package host

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// execServer answers ExecSync as a runtime does.
type execServer struct {
	cri.UnimplementedRuntimeServiceServer
	got *cri.ExecSyncRequest
}

func (s *execServer) ExecSync(_ context.Context, r *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	s.got = r
	if r.Cmd[0] == "fail" {
		return &cri.ExecSyncResponse{ExitCode: 3, Stderr: []byte("no disk")}, nil
	}
	return &cri.ExecSyncResponse{}, nil
}

// TestCRIExec runs a command over a real socket with the runtime's protocol.
func TestCRIExec(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cri.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server, service := grpc.NewServer(), &execServer{}
	cri.RegisterRuntimeServiceServer(server, service)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	run, err := CRIExec(socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "c1", []string{"/bin/save"}); err != nil || service.got.ContainerId != "c1" || service.got.Timeout != execSeconds {
		t.Errorf("%v, asked %+v", err, service.got)
	}
	if err := run(t.Context(), "c1", []string{"fail"}); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("a command that fails: %v", err)
	}
	gone, err := CRIExec(socket + ".gone")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone(t.Context(), "c1", []string{"x"}); err == nil {
		t.Error("a socket that is not there ran a command")
	}
}
