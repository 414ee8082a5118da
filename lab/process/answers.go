package process

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/api/v1alpha1"
)

// clocks is one moment by the machine's clock and by the cluster's.
type clocks struct{ wall, lab time.Time }

// here brings a time of the cluster to the machine's clock, and there one of the machine to the cluster's: what lies as far ahead by the one
// lies as far ahead by the other.
func (c clocks) here(t time.Time) time.Time { return c.wall.Add(t.Sub(c.lab)) }

func (c clocks) there(t time.Time) time.Time { return c.lab.Add(t.Sub(c.wall)) }

// show writes the pod's fields that changed into the files that follow them. An unchanged field stays as it is: the two
// clocks run apart by up to a step of the lab's, and a deadline is not to waver for that.
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
		if err := notice.ReplaceFile(n.path, text); err != nil {
			return fmt.Errorf("show %s: %w", n.field, err)
		}
		n.shown = &says
	}
	return nil
}

// noticeHere is a notice with its deadline by the machine's clock. A text that is no notice stays as it is: the process
// is to judge it.
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

// answers are what a process has said in its files, as far as it was carried on: by the node agent's own code.
type answers struct {
	r     *Runner
	dir   string
	relay notice.Relay
}

// carry brings what is new to the annotations of the pod and its job. A write that the API server did not take is tried
// again.
func (a *answers) carry(ctx context.Context, p *corev1.Pod) {
	if a.dir == "" {
		return
	}
	err := a.relay.Carry(notice.Open(a.dir), []string{notice.FileAck, notice.FileHeartbeat, notice.FileCheckpoint}, func(file, text string) error {
		switch file {
		case notice.FileHeartbeat:
			return a.timed(text, func(t string) error { return a.r.annotate(ctx, p, v1alpha1.AnnotationHeartbeat, t) })
		case notice.FileCheckpoint:
			return a.timed(text, func(t string) error { return a.r.announce(ctx, p, t) })
		}
		return a.r.annotate(ctx, p, v1alpha1.AnnotationAck, text)
	})
	if err != nil && ctx.Err() == nil {
		a.r.o.Log.Warn("carry an answer", "pod", p.Namespace+"/"+p.Name, "err", err)
	}
}

// timed brings a time to the cluster's clock before it is written.
func (a *answers) timed(text string, write func(string) error) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("want a time as in 2026-01-02T15:04:05Z: %w", err)
	}
	return write(a.r.clocks().there(t).UTC().Format(time.RFC3339))
}
