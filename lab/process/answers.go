package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

// clocks is one moment by the machine's clock and by the cluster's.
type clocks struct{ wall, lab time.Time }

// here brings a time of the cluster to the machine's clock, and there one of the machine to the cluster's: what lies as far ahead by the one
// lies as far ahead by the other.
func (c clocks) here(t time.Time) time.Time { return c.wall.Add(t.Sub(c.lab)) }

func (c clocks) there(t time.Time) time.Time { return c.lab.Add(t.Sub(c.wall)) }

// show writes the pod's fields that changed into the files that follow them. What did not change stays as it is: the two clocks run apart by
// up to a step of the lab's, and a deadline is not to waver for that.
func (l *layout) show(p *corev1.Pod, c clocks) error {
	for i := range l.notes {
		n := &l.notes[i]
		says, err := podField(p, n.field)
		if err != nil {
			return err
		}
		if n.shown != nil && *n.shown == says {
			continue
		}
		text := says
		if n.field == "metadata.annotations['"+v1alpha1.AnnotationNotice+"']" {
			text = noticeHere(text, c)
		}
		if err := replaceFile(n.path, text); err != nil {
			return fmt.Errorf("show %s: %w", n.field, err)
		}
		n.shown = &says
	}
	return nil
}

// noticeHere is a notice with its deadline by the machine's clock. What is no notice stays as it is: the process is to judge it.
func noticeHere(text string, c clocks) string {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return text
	}
	at, _ := fields["deadline"].(string)
	deadline, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return text
	}
	fields["deadline"] = c.here(deadline).UTC().Format(time.RFC3339)
	out, err := json.Marshal(fields)
	if err != nil {
		return text
	}
	return string(out)
}

// replaceFile replaces a file as a whole, so that nobody reads half of it.
func replaceFile(path, text string) error {
	fresh := path + ".new"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(fresh, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// answers are what a process has said in its files, as far as it was carried on.
type answers struct {
	r   *Runner
	dir string

	ack, heartbeat, checkpoint said
}

// said is what a file said, and since when: the same epoch written again answers the notice of another loan.
type said struct {
	text string
	at   time.Time
}

// carry brings what is new to the annotations of the pod and its job. What the API server did not take is brought again.
func (a *answers) carry(ctx context.Context, p *corev1.Pod) {
	if a.dir == "" {
		return
	}
	for _, answer := range []struct {
		file  string
		was   *said
		write func(ctx context.Context, text string) error
	}{
		{"ack", &a.ack, func(ctx context.Context, text string) error {
			return a.r.annotate(ctx, p, v1alpha1.AnnotationAck, text)
		}},
		{"heartbeat", &a.heartbeat, func(ctx context.Context, text string) error {
			return a.timed(text, func(t string) error { return a.r.annotate(ctx, p, v1alpha1.AnnotationHeartbeat, t) })
		}},
		{"checkpoint", &a.checkpoint, func(ctx context.Context, text string) error {
			return a.timed(text, func(t string) error { return a.r.announce(ctx, p, t) })
		}},
	} {
		now := readAnswer(filepath.Join(a.dir, answer.file))
		if now.text == "" || now == *answer.was {
			continue
		}
		if err := answer.write(ctx, now.text); err != nil {
			if ctx.Err() == nil {
				a.r.o.Log.Warn("carry an answer", "pod", p.Namespace+"/"+p.Name, "file", answer.file, "err", err)
			}
			continue
		}
		*answer.was = now
	}
}

// readAnswer reads a file; one that is not there says nothing.
func readAnswer(path string) said {
	info, err := os.Stat(path)
	if err != nil {
		return said{}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return said{}
	}
	return said{strings.TrimSpace(string(data)), info.ModTime()}
}

// timed brings a time to the cluster's clock before it is written.
func (a *answers) timed(text string, write func(string) error) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("want a time as in 2026-01-02T15:04:05Z: %w", err)
	}
	return write(a.r.clocks().there(t).UTC().Format(time.RFC3339))
}
