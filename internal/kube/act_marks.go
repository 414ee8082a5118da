package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/planner"
)

func (a *applier) marks() []action {
	out := make([]action, len(a.plan.Marks))
	for i := range a.plan.Marks {
		m := &a.plan.Marks[i]
		out[i] = action{name: actionMark, subject: m.Node, group: m.Node,
			check: func() error { return a.door.CheckMark(m) },
			do:    func(ctx context.Context) error { return a.mark(ctx, m) },
		}
	}
	return out
}

// mark brings a node's taint, labels and annotations to what the loans say. The taints of a node are one atomic list to server-side apply,
// so owning one of them there would mean owning all; a merge patch with the resourceVersion leaves the others as they were read. Nodes
// report themselves often: a conflict is read again once, since marks are a level that rests on nothing else of the node.
func (a *applier) mark(ctx context.Context, m *planner.Mark) error {
	f, ok := a.c.nodes.get("", m.Node)
	if !ok || fleet.NodeID(f.UID) != m.ID {
		return stale("node %s is gone", m.Node)
	}
	if err := a.ours(f); err != nil {
		return err
	}
	if err := a.lockStands(ctx, m, f.node.Marks); err != nil {
		return err
	}
	nodes := a.c.core.CoreV1().Nodes()
	got, err := nodes.Patch(ctx, m.Node, types.MergePatchType, a.markPatch(f, m.Want), patchOptions())
	if apierrors.IsConflict(err) {
		if onlyKeeps(m.Want, f.node.Marks) {
			return stale("node %s changed since it was read: its annotations wait for the next cycle", m.Node)
		}
		now, get := nodes.Get(ctx, m.Node, metav1.GetOptions{})
		if get != nil {
			return fmt.Errorf("read node %s again: %w", m.Node, get)
		}
		if fleet.NodeID(now.UID) != m.ID {
			return stale("node %s is another machine now", m.Node)
		}
		again := newNodeFacts(now)
		if err := a.ours(again); err != nil {
			return err
		}
		if err := a.lockStands(ctx, m, again.node.Marks); err != nil {
			return err
		}
		got, err = nodes.Patch(ctx, m.Node, types.MergePatchType, a.markPatch(again, m.Want), patchOptions())
	}
	if err != nil {
		return fmt.Errorf("mark node %s: %w", m.Node, err)
	}
	a.see(a.c.nodes.sees("", m.Node, got.UID, got.ResourceVersion))
	return nil
}

// onlyKeeps reports whether nothing but annotations of a node would change.
func onlyKeeps(want, is fleet.NodeMarks) bool {
	want.KeepNode = is.KeepNode
	return want == is
}

// ours refuses a node that a newer leader marked: no rule of the API server fences a Node.
func (a *applier) ours(f *nodeFacts) error {
	if f.leader > a.plan.LeaderEpoch {
		return stale("node %s was marked by leader epoch %d, this one is %d", f.Name, f.leader, a.plan.LeaderEpoch)
	}
	return nil
}

// lockStands asks the API server for the share of a node once more before marks are written by which pods may land there, or by which what
// is there ends. A leader that was deposed while it carried its plan out would open a parcel that its successor recalled; the share, which
// every move writes first, tells.
// It is not asked where the node, at the version that the patch names, has these marks already.
func (a *applier) lockStands(ctx context.Context, m *planner.Mark, is fleet.NodeMarks) error {
	opens := m.Want.OfflineLabel && !is.OfflineLabel || !m.Want.HolderTaint && is.HolderTaint
	if !opens && (m.Want.Fence != fleet.FenceExecute || is.Fence == fleet.FenceExecute) {
		return nil
	}
	known := a.currentShare(m.Node)
	if err := a.sameShare(m.Node, known); err != nil {
		return err
	}
	version := ""
	if known != nil {
		version = known.ResourceVersion
	}
	now, err := a.c.dyn.Resource(gvrShares).Get(ctx, m.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && version == "":
		return nil
	case err != nil:
		return fmt.Errorf("read the share of node %s again: %w", m.Node, err)
	case now.GetResourceVersion() != version:
		return stale("the share of node %s changed since it was checked", m.Node)
	}
	return nil
}

func (a *applier) markPatch(f *nodeFacts, want fleet.NodeMarks) []byte {
	notes := a.epochNote()
	keepPatch(notes, f, want.KeepNode)
	for _, key := range f.dated {
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
	if want.HolderTaint != f.node.Marks.HolderTaint || want.Fence != f.node.Marks.Fence {
		taints := slices.DeleteFunc(slices.Clone(f.taints), func(t corev1.Taint) bool { return isHolderTaint(t) || isFence(t) })
		if want.HolderTaint {
			taints = append(taints, holderTaint())
		}
		if want.Fence != fleet.FenceNone {
			taints = append(taints, corev1.Taint{Key: v1alpha1.TaintFenced, Effect: corev1.TaintEffect(want.Fence)})
		}
		body["spec"] = map[string]any{"taints": nonNil(taints)}
	}
	return mergePatch(body)
}

// nonNil makes an empty list of a nil one: in a merge patch null would be dropped by the defaulting that follows.
func nonNil(ts []corev1.Taint) []corev1.Taint {
	if ts == nil {
		return []corev1.Taint{}
	}
	return ts
}

// keepPatch adds the autoscalers' annotations that are missing and notes which ones those were; taking them back removes only these.
func keepPatch(notes map[string]any, f *nodeFacts, keep bool) {
	if keep {
		added := strings.FieldsFunc(f.kept.Value, func(r rune) bool { return r == ',' })
		for _, key := range keepAnnotations() {
			if !f.protected[key] {
				notes[key] = "true"
				if !slices.Contains(added, key) {
					added = append(added, key)
				}
			}
		}
		notes[annotationKept] = strings.Join(added, ",")
		return
	}
	if !f.kept.OK {
		return
	}
	for _, key := range keepAnnotations() {
		if slices.Contains(strings.Split(f.kept.Value, ","), key) {
			notes[key] = nil
		}
	}
	notes[annotationKept] = nil
}
