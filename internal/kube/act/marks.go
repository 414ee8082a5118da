package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/internal/kube/object"
	"github.com/springtide/springtide/internal/kube/watch"
	"github.com/springtide/springtide/internal/loop/protocol"
)

// setMarks brings a node's taint, labels and annotations to what the loans say. The taints of a node are one atomic list to server-side apply,
// so owning one of them there would mean owning all; a merge patch with the resourceVersion leaves the others as they were read.
func (a *applier) setMarks(ctx context.Context, w *protocol.Write, want fleet.NodeMarks) (written, error) {
	name := w.Object.Name
	a.mu.Lock()
	f, ok := a.nodes[name], true
	a.mu.Unlock()
	if f == nil {
		f, ok = a.c.Nodes.Get("", name)
	}
	if !ok {
		return written{}, object.Stale("node %s is gone", name)
	}
	now := a.nodeFact(f)
	if err := w.If.Holds(&now); err != nil { // no rule of the API server fences a Node
		return written{}, object.Stale("node %s: %w", name, err)
	}
	got, err := a.c.Core.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, a.markPatch(f, want),
		object.PatchOptions())
	if err != nil {
		return written{}, fmt.Errorf("mark node %s: %w", name, err)
	}
	return written{got.UID, got.ResourceVersion, a.c.Nodes.Sees("", name, got.UID, got.ResourceVersion),
		fleet.Ledger{}}, nil
}

// readNode reads a node again, for a write that met a conflict: nodes report themselves often.
func (a *applier) readNode(ctx context.Context, name string) (protocol.Fact, error) {
	now, err := a.c.Core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return protocol.Fact{}, err
	}
	f := watch.NewNodeFacts(now)
	a.mu.Lock()
	a.nodes[name] = f
	a.mu.Unlock()
	return a.nodeFact(f), nil
}

// nodeFact is what preconditions ask of a node.
func (a *applier) nodeFact(f *watch.NodeFacts) protocol.Fact {
	return protocol.Fact{Exists: true, UID: fleet.UID(f.UID), Version: f.ResourceVersion,
		LeaderEpoch: a.leads.Fencing(f.Leader)}
}

func (a *applier) markPatch(f *watch.NodeFacts, want fleet.NodeMarks) []byte {
	notes := a.epochNote(f.UID)
	keepPatch(notes, f, want.KeepNode)
	for _, key := range f.Dated {
		notes[key] = nil
	}
	labels := map[string]any{v1alpha1.LabelOffline: nil, v1alpha1.LabelHome: nil} // null removes a label
	if want.OfflineLabel {
		labels[v1alpha1.LabelOffline] = "true"
	}
	if want.HomeLabel {
		labels[v1alpha1.LabelHome] = v1alpha1.HomeOffline
	}
	body := map[string]any{"metadata": map[string]any{
		"resourceVersion": f.ResourceVersion,
		"labels":          labels,
		"annotations":     notes,
	}}
	if want.HolderTaint != f.Node.Marks.HolderTaint || want.Fence != f.Node.Marks.Fence {
		taints := slices.DeleteFunc(slices.Clone(f.Taints), func(t corev1.Taint) bool {
			return facts.IsHolderTaint(t) ||
				watch.IsFence(t)
		})
		if want.HolderTaint {
			taints = append(taints, facts.HolderTaint())
		}
		if want.Fence != fleet.FenceNone {
			taints = append(taints, corev1.Taint{Key: v1alpha1.TaintFenced, Effect: corev1.TaintEffect(want.Fence)})
		}
		body["spec"] = map[string]any{"taints": nonNil(taints)}
	}
	return object.MergePatch(body)
}

// nonNil makes an empty list of a nil one: in a merge patch null would be dropped by the defaulting that follows.
func nonNil(ts []corev1.Taint) []corev1.Taint {
	if ts == nil {
		return []corev1.Taint{}
	}
	return ts
}

// keepPatch adds the autoscalers' annotations that are missing and notes which ones those were; taking them back removes only these.
func keepPatch(notes map[string]any, f *watch.NodeFacts, keep bool) {
	if keep {
		added := strings.FieldsFunc(f.Kept.Value, func(r rune) bool { return r == ',' })
		for _, key := range watch.KeepAnnotations() {
			if !f.Protected[key] {
				notes[key] = "true"
				if !slices.Contains(added, key) {
					added = append(added, key)
				}
			}
		}
		notes[watch.AnnotationKept] = strings.Join(added, ",")
		return
	}
	if !f.Kept.OK {
		return
	}
	for _, key := range watch.KeepAnnotations() {
		if slices.Contains(strings.Split(f.Kept.Value, ","), key) {
			notes[key] = nil
		}
	}
	notes[watch.AnnotationKept] = nil
}
