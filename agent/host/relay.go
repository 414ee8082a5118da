package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/agent/notice"
	"github.com/springtide/springtide/api/v1alpha1"
)

// answerPoll is how often the answers of a pod under notice are looked for.
const answerPoll = time.Second

// relays are the pods that take part in notices.
type relays struct{ pods map[string]*relayed }

type relayed struct {
	relay notice.Relay
	// called is the loan and epoch that the hook was called for.
	called string
	// warned is what was said last of this pod, so that it is said once.
	warned string
}

// relay shows notices to pods and carries their answers to annotations. It reports whether a pod is under notice, so that answers are looked for
// soon.
func (a *Agent) relay(ctx context.Context, c *Cluster, f *Facts) bool {
	noticed := false
	live := map[string]*relayed{}
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Notice == "" && !slices.Contains(p.Volumes, notice.Volume) {
			continue
		}
		r := a.relays.pods[p.UID]
		if r == nil {
			r = &relayed{}
		}
		live[p.UID] = r
		noticed = noticed || p.Notice != ""
		if err := errors.Join(a.showNotice(p), a.callHook(ctx, p, r), a.carryAnswers(ctx, c, p, r)); err != nil && ctx.Err() == nil {
			if text := err.Error(); text != r.warned {
				a.o.Log.Warn("relay a notice", "pod", p.FullName(), "err", err)
				r.warned = text
			}
			a.m.relays.WithLabelValues("error").Inc()
		}
	}
	a.relays.pods = live
	return noticed
}

// showNotice writes the file of a pod that has the volume. A volume that is not there yet is no error: the kubelet is making it.
func (a *Agent) showNotice(p *PodFacts) error {
	if !slices.Contains(p.Volumes, notice.Volume) {
		return nil
	}
	changed, err := notice.Open(notice.Dir(a.o.Roots.Kubelet, p.UID)).Show(p.Notice)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if changed {
		a.m.relays.WithLabelValues("shown").Inc()
	}
	return err
}

// callHook calls the hook once for each loan and epoch, whether it succeeds or not: a hook that is called again and again would disturb the
// checkpoint that it started.
func (a *Agent) callHook(ctx context.Context, p *PodFacts, r *relayed) error {
	if p.Hook == "" || p.Notice == "" {
		return nil
	}
	n, err := notice.Parse(p.Notice)
	if err != nil {
		return err
	}
	key := fmt.Sprint(n.Loan, " ", n.Epoch)
	if key == r.called || p.Ack == strconv.FormatInt(n.Epoch, 10) {
		return nil
	}
	r.called = key
	h, err := notice.ParseHook(p.Hook, p.Ports)
	if err != nil {
		return err
	}
	pod := notice.Pod{IP: p.IP, Containers: map[string]string{}}
	if p.HostNetwork {
		pod.IP = ""
	}
	for id, name := range p.Containers {
		pod.Containers[name] = id
	}
	// A hook may take its five seconds; the machine is not left alone for it.
	go func() {
		if err := h.Call(ctx, pod, p.Notice, a.o.Exec); err != nil && ctx.Err() == nil {
			a.o.Log.Warn("a checkpoint hook failed", "pod", p.FullName(), "err", err)
			a.m.relays.WithLabelValues("hook_error").Inc()
			return
		}
		a.m.relays.WithLabelValues("hook").Inc()
	}()
	return nil
}

// carryAnswers brings what the pod's processes said to its annotations. An acknowledgement counts for the epoch of the notice alone.
func (a *Agent) carryAnswers(ctx context.Context, c *Cluster, p *PodFacts, r *relayed) error {
	if !slices.Contains(p.Volumes, notice.Volume) {
		return nil
	}
	return r.relay.Carry(notice.Open(notice.Dir(a.o.Roots.Kubelet, p.UID)), []string{notice.FileAck, notice.FileHeartbeat}, func(file, text string) error {
		key, has := v1alpha1.AnnotationAck, p.Ack
		if file == notice.FileHeartbeat {
			key, has = v1alpha1.AnnotationHeartbeat, p.Heartbeat
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				return fmt.Errorf("want a time as in 2026-01-02T15:04:05Z: %w", err)
			}
		} else if n, err := notice.Parse(p.Notice); err != nil || text != strconv.FormatInt(n.Epoch, 10) {
			return fmt.Errorf("%q is not the epoch of the pod's notice (%d): write the epoch that the notice names", text, n.Epoch)
		}
		if text == has {
			return nil
		}
		err := c.annotate(ctx, p, key, text)
		a.m.apiWrites.WithLabelValues("Pod", result(err)).Inc()
		if err == nil {
			a.m.relays.WithLabelValues(file).Inc()
		}
		return err
	})
}

// annotate writes one annotation of a pod, if it still is that pod.
func (c *Cluster) annotate(ctx context.Context, p *PodFacts, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID, "annotations": map[string]string{key: value}}})
	if err != nil {
		return err
	}
	_, err = c.Core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, and wants nothing any more
	}
	return err
}
