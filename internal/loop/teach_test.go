package loop_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/internal/loop/looptest"
)

// Kin are learned once there are enough services with enough history, and then once a day.
func TestServicesTeachTheirKin(t *testing.T) {
	t.Parallel()
	o := smallWorld()
	o.Services, o.History = 8, 15*24*time.Hour
	w := looptest.New(o)
	var out bytes.Buffer
	ports := w.Ports()
	ports.Log = slog.New(slog.NewTextHandler(&out, nil))
	l := loop.New(ports, loop.DefaultOptions())
	goOn(t, w, l, 1, 30*time.Minute)
	if n := strings.Count(out.String(), "services have in common\" services=8 "); n != 1 {
		t.Errorf("services taught %d times in half an hour, want once:\n%s", n, out.String())
	}

	o.Services = 7
	w = looptest.New(o)
	out.Reset()
	ports = w.Ports()
	ports.Log = slog.New(slog.NewTextHandler(&out, nil))
	goOn(t, w, loop.New(ports, loop.DefaultOptions()), 1, 10*time.Minute)
	if strings.Contains(out.String(), "in common") {
		t.Errorf("seven services taught:\n%s", out.String())
	}
}
