package watch

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	resources "k8s.io/component-helpers/resource"

	"github.com/springtide/springtide/lab/judge"
)

// The names that operators know from the documentation.
const (
	prefix          = "springtide.dev/"
	labelOffline    = prefix + "offline"
	labelHome       = prefix + "home"
	labelComponent  = prefix + "component"
	taintHolder     = prefix + "holder"
	taintFenced     = prefix + "fenced"
	noteNotice      = prefix + "notice"
	noteAck         = prefix + "ack"
	noteCells       = prefix + "cells"
	defaultNotice   = 120
	componentFiller = "filler"
)

func node(o runtime.Object) any {
	n, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	out := &judge.Node{Name: n.Name, UID: string(n.UID), Labels: n.Labels, Cordoned: n.Spec.Unschedulable, Room: amount(n.Status.Allocatable)}
	for i := range n.Spec.Taints {
		switch t := &n.Spec.Taints[i]; {
		case t.Key == taintHolder:
			out.HolderTaint = true
		case t.Key == taintFenced:
			out.FencedTaint = true
		case t.Effect != corev1.TaintEffectPreferNoSchedule:
			out.ForeignTaint = true
		}
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return out
}

// amount counts resources: processors in thousandths, all others in whole units.
func amount(list corev1.ResourceList) judge.Amount {
	out := judge.Amount{}
	for name, q := range list {
		if name == corev1.ResourceCPU {
			out[string(name)] = q.MilliValue()
		} else {
			out[string(name)] = q.Value()
		}
	}
	return out
}

func pod(o runtime.Object) any {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	out := &judge.Pod{
		Ref: judge.Ref{Namespace: p.Namespace, Name: p.Name}, UID: string(p.UID), Node: p.Spec.NodeName,
		Request: amount(resources.PodRequests(p, resources.PodResourcesOptions{})), Selector: p.Spec.NodeSelector,
		Filler: p.Labels[labelComponent] == componentFiller, Cells: cellList(p.Annotations[noteCells]),
		Leaving:  p.DeletionTimestamp != nil,
		Finished: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	out.Request[string(corev1.ResourcePods)] = 1
	if s := p.DeletionGracePeriodSeconds; s != nil {
		out.Grace = time.Duration(*s) * time.Second
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	out.Side, out.Owner = sideOf(p)
	out.Picky = picky(&p.Spec)
	out.Notice = noticeOf(p.Annotations[noteNotice])
	out.Acked, _ = strconv.ParseInt(p.Annotations[noteAck], 10, 64) // 0 for what is no number: nothing was acknowledged
	return out
}

// sideOf tells whose work a pod is: who asks for the label of offline machines is offline's, and the pods of Deployments and StatefulSets that do not
// are online's. DaemonSets' pods are of no side.
func sideOf(p *corev1.Pod) (judge.Side, judge.Ref) {
	if p.Labels[labelComponent] != "" {
		return judge.Neither, judge.Ref{}
	}
	kind, owner := "", judge.Ref{Namespace: p.Namespace}
	for i := range p.OwnerReferences {
		if r := &p.OwnerReferences[i]; r.Controller != nil && *r.Controller {
			kind, owner.Name = r.Kind, r.Name
		}
	}
	switch {
	case kind == "DaemonSet" || kind == "Node":
		return judge.Neither, owner
	case asksForOffline(&p.Spec):
		return judge.Offline, owner
	case kind == "ReplicaSet":
		if i := strings.LastIndexByte(owner.Name, '-'); i > 0 {
			owner.Name = owner.Name[:i]
		}
		return judge.Online, owner
	case kind == "StatefulSet":
		return judge.Online, owner
	}
	return judge.Neither, owner
}

func asksForOffline(s *corev1.PodSpec) bool {
	if s.NodeSelector[labelOffline] != "" || s.NodeSelector[labelHome] != "" {
		return true
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for i := range term.MatchExpressions {
			if k := term.MatchExpressions[i].Key; k == labelOffline || k == labelHome {
				return true
			}
		}
	}
	return false
}

// picky reports whether a pod asks for more than room and labels.
func picky(s *corev1.PodSpec) bool {
	return s.Affinity != nil || len(s.TopologySpreadConstraints) > 0 || len(s.SchedulingGates) > 0 || len(s.ResourceClaims) > 0 ||
		slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// cellList reads a list in Linux' format: 0-1,3.
func cellList(text string) []int {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(to); err != nil || b-a > 1024 {
				continue
			}
		}
		for ; a <= b; a++ {
			out = append(out, a)
		}
	}
	return out
}

// noticeOf reads the checkpoint notice on a pod. The bundled scheduler's own, before it preempts within online's room, is no recall.
func noticeOf(text string) judge.Notice {
	var n struct {
		Loan     string    `json:"loan"`
		Epoch    int64     `json:"epoch"`
		Deadline time.Time `json:"deadline"`
	}
	if text == "" || json.Unmarshal([]byte(text), &n) != nil {
		return judge.Notice{}
	}
	return judge.Notice{Loan: n.Loan, Epoch: n.Epoch, Deadline: n.Deadline}
}

func deployment(o runtime.Object) any {
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	out := &judge.Deployment{Ref: judge.Ref{Namespace: d.Namespace, Name: d.Name}, UID: string(d.UID), Replicas: 1}
	if d.Spec.Replicas != nil {
		out.Replicas = int(*d.Spec.Replicas)
	}
	return out
}

func event(o runtime.Object) any {
	e, ok := o.(*corev1.Event)
	if !ok {
		return nil
	}
	about := judge.Ref{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
	if e.InvolvedObject.Kind == "Loan" || e.InvolvedObject.Kind == "Node" || e.InvolvedObject.Kind == "CapacityPool" || e.InvolvedObject.Kind == "NodeShare" {
		about.Namespace = "" // events of cluster objects stand in a namespace, and so might the reference
	}
	return judge.Event{About: about, Text: e.Reason + ": " + e.Message}
}

func leaseOf(o runtime.Object) any {
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		return nil
	}
	var r renewed
	if l.Spec.HolderIdentity != nil {
		r.holder = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseTransitions != nil {
		r.transitions = int(*l.Spec.LeaseTransitions)
	}
	if l.Spec.RenewTime != nil {
		r.at = l.Spec.RenewTime.Time
	}
	return r
}

// read takes the fields of an object that the judge knows.
func read[T any](u *unstructured.Unstructured) *T {
	out := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out) != nil {
		return nil // an object of a shape that is not documented: the API server's own schema keeps them away
	}
	return out
}

func when(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func ints(list []int64) []int {
	var out []int
	for _, v := range list {
		out = append(out, int(v))
	}
	return out
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func conditions(all []condition) []judge.Condition {
	var out []judge.Condition
	for _, c := range all {
		out = append(out, judge.Condition(c))
	}
	return out
}

func loan(u *unstructured.Unstructured) any {
	o := read[struct {
		Spec struct {
			NodeName string  `json:"nodeName"`
			NodeUID  string  `json:"nodeUID"`
			Cells    []int64 `json:"cells"`
			From     string  `json:"from"`
			To       string  `json:"to"`
		} `json:"spec"`
		Status struct {
			Phase    string       `json:"phase"`
			Epoch    int64        `json:"epoch"`
			Deadline *metav1.Time `json:"deadline"`
			KillTime *metav1.Time `json:"killTime"`
			Reason   string       `json:"reason"`
			History  []struct {
				Phase string `json:"phase"`
			} `json:"history"`
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}](u)
	if o == nil {
		return nil
	}
	out := &judge.Loan{
		Name: u.GetName(), UID: string(u.GetUID()), Node: o.Spec.NodeName, NodeUID: o.Spec.NodeUID, From: o.Spec.From, To: o.Spec.To, Cells: ints(o.Spec.Cells),
		Phase: o.Status.Phase, Epoch: o.Status.Epoch, Deadline: when(o.Status.Deadline), KillTime: when(o.Status.KillTime), Reason: o.Status.Reason,
		Conditions: conditions(o.Status.Conditions),
	}
	for _, h := range o.Status.History {
		out.History = append(out.History, h.Phase)
	}
	return out
}

func share(u *unstructured.Unstructured) any {
	o := read[struct {
		Spec struct {
			NodeUID string `json:"nodeUID"`
			Parcels []struct {
				Cells    []int64 `json:"cells"`
				Holder   string  `json:"holder"`
				Next     string  `json:"next"`
				LoanName string  `json:"loanName"`
				LoanUID  string  `json:"loanUID"`
				Epoch    int64   `json:"epoch"`
			} `json:"parcels"`
		} `json:"spec"`
	}](u)
	if o == nil {
		return nil
	}
	out := &judge.Share{Node: u.GetName(), NodeUID: o.Spec.NodeUID}
	for i := range o.Spec.Parcels {
		p := &o.Spec.Parcels[i]
		out.Parcels = append(out.Parcels, judge.Parcel{Cells: ints(p.Cells), Holder: p.Holder, Next: p.Next, LoanName: p.LoanName, LoanUID: p.LoanUID, Epoch: p.Epoch})
	}
	return out
}

func pool(u *unstructured.Unstructured) any {
	o := read[struct {
		Spec struct {
			Class         string               `json:"class"`
			NodeSelector  metav1.LabelSelector `json:"nodeSelector"`
			NoticeSeconds *int64               `json:"noticeSeconds"`
			SchedulerName string               `json:"schedulerName"`
		} `json:"spec"`
	}](u)
	if o == nil {
		return nil
	}
	out := &judge.Pool{Name: u.GetName(), ByCells: o.Spec.SchedulerName != "", Side: judge.Side(strings.ToLower(o.Spec.Class)), Notice: defaultNotice * time.Second}
	if s := o.Spec.NoticeSeconds; s != nil {
		out.Notice = time.Duration(*s) * time.Second
	}
	if s, err := metav1.LabelSelectorAsSelector(&o.Spec.NodeSelector); err == nil && !s.Empty() {
		out.Matches = func(all map[string]string) bool { return s.Matches(labels.Set(all)) }
	}
	return out
}

func service(u *unstructured.Unstructured) any {
	o := read[struct {
		Spec struct {
			TargetRef struct {
				Name string `json:"name"`
			} `json:"targetRef"`
			Mode      string    `json:"mode"`
			Pause     *struct{} `json:"pause"`
			Actuation string    `json:"actuation"`
			Replicas  struct {
				Max int64 `json:"max"`
			} `json:"replicas"`
		} `json:"spec"`
		Status struct {
			DesiredReplicas int64       `json:"desiredReplicas"`
			Conditions      []condition `json:"conditions"`
		} `json:"status"`
	}](u)
	if o == nil {
		return nil
	}
	return &judge.Service{
		Ref: judge.Ref{Namespace: u.GetNamespace(), Name: u.GetName()}, Target: judge.Ref{Namespace: u.GetNamespace(), Name: o.Spec.TargetRef.Name},
		Acts: o.Spec.Mode == "Auto" && o.Spec.Pause == nil && (o.Spec.Actuation == "" || o.Spec.Actuation == "Scale"),
		Max:  int(o.Spec.Replicas.Max), Desired: int(o.Status.DesiredReplicas), Conditions: conditions(o.Status.Conditions),
	}
}

func topology(u *unstructured.Unstructured) any {
	o := read[struct {
		Zones []struct {
			Type string `json:"type"`
		} `json:"zones"`
	}](u)
	if o == nil {
		return nil
	}
	out := &judge.Topology{Node: u.GetName()}
	for _, z := range o.Zones {
		if z.Type == "Node" {
			out.Cells++
		}
	}
	return out
}
