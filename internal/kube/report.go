package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/loop"
)

type reporter struct{ every time.Duration }

func newReporter(every time.Duration) reporter { return reporter{every: every} }

func (c *Cluster) startEvents(ctx context.Context) {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.core.CoreV1().Events("")})
	c.events = b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.FieldManager})
}

func (c *Cluster) Report(ctx context.Context, r *loop.Report) error { return nil }
