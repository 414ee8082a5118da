package host

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/springtide/springtide/agent/notice"
)

// execSeconds bounds a command that a hook runs.
const execSeconds = 5

// CRIExec runs commands in containers through the runtime's CRI socket. The connection is made with the first command.
func CRIExec(socket string) (notice.Exec, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("open the CRI socket: %w", err)
	}
	client := cri.NewRuntimeServiceClient(conn)
	return func(ctx context.Context, container string, command []string) error {
		ctx, cancel := context.WithTimeout(ctx, (execSeconds+1)*time.Second)
		defer cancel()
		out, err := client.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: container, Cmd: command, Timeout: execSeconds})
		if err != nil {
			return fmt.Errorf("run %q: %w", command, err)
		}
		if out.ExitCode != 0 {
			text := out.Stderr
			if len(text) > 256 {
				text = text[:256]
			}
			return fmt.Errorf("run %q: exit code %d: %s", command, out.ExitCode, text)
		}
		return nil
	}, nil
}
