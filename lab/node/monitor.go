package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/springtide/springtide/lab/plane"
)

const monitorSocket = "monitor.sock"

// prompt ends each answer of QEMU's monitor.
var prompt = []byte("(qemu) ")

// Monitor gives QEMU one command (savevm, loadvm, stop, cont) and returns its answer.
func (m *Machine) Monitor(ctx context.Context, command string) (string, error) {
	c, err := m.monitor(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, command); err != nil {
		return "", err
	}
	return readPrompt(c)
}

// quit ends QEMU in order, so that its disk file is whole.
func (m *Machine) quit(ctx context.Context) error {
	c, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintln(c, "quit"); err != nil {
		return err
	}
	select {
	case <-m.ended:
		return m.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// monitor connects and reads up to the first prompt.
func (m *Machine) monitor(ctx context.Context) (net.Conn, error) {
	c, err := plane.DialUnix(ctx, m.dir, monitorSocket)
	if err != nil {
		return nil, fmt.Errorf("connect to QEMU's monitor: %w", err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if _, err := readPrompt(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// readPrompt reads up to the next prompt.
func readPrompt(r io.Reader) (string, error) {
	var all []byte
	buf := make([]byte, 4096)
	for !bytes.HasSuffix(all, prompt) {
		n, err := r.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return string(all), err
		}
	}
	return string(all), nil
}
