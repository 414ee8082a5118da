package measure

import (
	"testing"
	"time"
)

// Four cores: a minute of restoring, then work that is saved every ten minutes, then a notice whose save takes half a minute.
func TestWorker(t *testing.T) {
	noon := time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)
	w := Work{Cores: 4, Every: 10 * time.Minute, Restore: time.Minute}
	m := StartWorker(w, noon)
	near(t, "saved after 28 minutes", m.Play(w, noon.Add(28*time.Minute)), 4*20*60, 1e-9)
	near(t, "unsaved", m.Unsaved(), 4*7*60, 1e-9)
	ack := m.Notice(noon.Add(28*time.Minute), 30*time.Second)
	if !m.Noticed() || m.Acked(noon.Add(28*time.Minute)) || !m.Notice(ack, time.Hour).Equal(ack) {
		t.Error("a notice is answered once, after the save")
	}
	near(t, "saved while it saves", m.Play(w, ack.Add(-time.Second)), 0, 0)
	near(t, "cores while it saves", m.Used(w), 4, 0)
	near(t, "saved by the acknowledgement", m.Play(w, ack), 4*7*60, 1e-9)
	near(t, "cores after it", m.Used(w), 0, 0)
	m.Resume()
	m.Play(w, ack.Add(time.Minute))
	near(t, "unsaved a minute after the notice was taken back", m.Unsaved(), 4*60, 1e-9)
}
