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
	long(t)
	t.Parallel()
	o := smallWorld()
	o.Services, o.History = 8, 11*24*time.Hour
	w := looptest.New(o)
	lessons := func(epoch int64, d time.Duration) string {
		var out bytes.Buffer
		ports, lo := w.Ports(), loop.DefaultOptions()
		ports.Log = slog.New(slog.NewTextHandler(&out, nil))
		lo.Portrait.Step = time.Hour
		goOn(t, w, loop.New(ports, lo), epoch, d)
		return out.String()
	}
	if log := lessons(1, 30*time.Minute); strings.Count(log, "services have in common\" services=8 ") != 1 {
		t.Errorf("services taught in half an hour, want once:\n%s", log)
	}
	w.DropService("shop/svc-007")
	if log := lessons(2, 10*time.Minute); strings.Contains(log, "in common") {
		t.Errorf("seven services taught:\n%s", log)
	}
}
