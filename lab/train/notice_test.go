package train

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestNoticeStandsUntilItIsSurelyVoid(t *testing.T) {
	deadline := time.Date(2026, 6, 4, 1, 8, 0, 0, time.UTC)
	const text = `{"loan":"a","epoch":3,"deadline":"2026-06-04T01:08:00Z"}`
	for _, c := range []struct {
		name, text string
		at         time.Time
		want       NoticeID
		bad        bool
	}{
		{"none", "", deadline, NoticeID{}, false},
		{"before the deadline", text, deadline.Add(-time.Minute), NoticeID{"a", 3}, false},
		{"the eviction is late", text, deadline.Add(time.Minute), NoticeID{"a", 3}, false},
		{"no pod came", text, deadline.Add(time.Minute + time.Second), NoticeID{}, false},
		{"no epoch", `{"deadline":"2026-06-04T01:08:00Z"}`, deadline, NoticeID{}, true},
		{"no deadline", `{"epoch":1}`, deadline, NoticeID{}, true},
		{"no notice", "soon", deadline, NoticeID{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := Notice{File: filepath.Join(t.TempDir(), "notice"), Patience: time.Minute}
			if err := os.WriteFile(n.File, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := n.Stands(c.at)
			if got != c.want || (err != nil) != c.bad {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	n := Notice{File: filepath.Join(t.TempDir(), "notice")}
	if got, err := n.Stands(deadline); got != (NoticeID{}) || err != nil {
		t.Errorf("without a file: %+v, %v", got, err)
	}
}

// TestTakenBack: the controller removes the annotation of a recall that is taken back, and the downward API empties the file.
func TestTakenBack(t *testing.T) {
	at := time.Date(2026, 6, 4, 1, 7, 0, 0, time.UTC)
	n := Notice{File: filepath.Join(t.TempDir(), "notice"), Answers: t.TempDir(), Patience: time.Minute}
	for _, c := range []struct {
		text string
		want NoticeID
	}{
		{`{"loan":"a","epoch":3,"deadline":"2026-06-04T01:08:00Z"}`, NoticeID{"a", 3}},
		{"", NoticeID{}},
		{`{"loan":"a","epoch":4,"deadline":"2026-06-04T01:09:00Z"}`, NoticeID{"a", 4}},
	} {
		if err := os.WriteFile(n.File, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := n.Stands(at)
		if got != c.want || err != nil {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
		if got == (NoticeID{}) {
			continue
		}
		if fresh, err := n.Acknowledge(got); !fresh || err != nil {
			t.Errorf("%+v: fresh %v, %v", got, fresh, err)
		}
	}
}

func TestAcknowledgeOncePerNotice(t *testing.T) {
	n := Notice{Answers: t.TempDir()}
	ack := func(id NoticeID, want bool) {
		t.Helper()
		if fresh, err := n.Acknowledge(id); fresh != want || err != nil {
			t.Errorf("%+v: fresh %v, %v; want %v", id, fresh, err, want)
		}
		if got, _ := os.ReadFile(filepath.Join(n.Answers, "ack")); string(got) != "2" {
			t.Errorf("%+v: the file says %q", id, got)
		}
	}
	ack(NoticeID{"a", 2}, true)
	ack(NoticeID{"a", 2}, false)
	ack(NoticeID{"b", 2}, true) // epochs count per loan
}
