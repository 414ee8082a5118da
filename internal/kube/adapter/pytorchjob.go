package adapter

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/fleet"
)

// pyTorchJob adapts the training operator's PyTorchJob: the replicas of Worker are written. The operator makes missing
// workers again under their index and takes those of the highest indices away; torchrun in each of them meets the
// others at the rendezvous, of which nothing but the endpoint must stay.
type pyTorchJob struct{}

// labelReplicaType is "worker" or "master" on pods of the training operator.
const labelReplicaType = "training.kubeflow.org/replica-type"

func (pyTorchJob) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}
}

func (p pyTorchJob) Resource() schema.GroupVersionResource {
	return p.Kind().GroupVersion().WithResource("pytorchjobs")
}

func (pyTorchJob) PartOf(labels map[string]string) string { return labels[labelReplicaType] }

func (pyTorchJob) Read(u *unstructured.Unstructured) Workload {
	o := object(u.Object)
	w := Workload{What: what(u), Finished: o.condition("Succeeded", "Failed")}
	path := []string{"spec", "pytorchReplicaSpecs", "Worker", "replicas"}
	worker := Part{Name: "worker", Size: o.number(1, path...), Remaining: -1, Active: -1, Ending: -1, Path: path, Leaves: fleet.LeavesHighest,
		Template: o.podSpec("spec", "pytorchReplicaSpecs", "Worker", "template", "spec"),
		Labels:   o.labels("spec", "pytorchReplicaSpecs", "Worker", "template", "metadata", "labels")}
	if w.Finished {
		worker.Remaining = 0
	}
	if o.yes("spec", "runPolicy", "suspend") {
		refuseSuspended(&w.Refusals, u, "spec.runPolicy.suspend", w.What)
	}
	master := o.podSpec("spec", "pytorchReplicaSpecs", "Master", "template", "spec")
	worker.judgePolicy(u, o, master, w.What)
	if o.has("spec", "runPolicy", "backoffLimit") && o.number(0, "spec", "runPolicy", "backoffLimit") < minRestarts {
		refuse(&worker.StableToo, catalog.PyTorchBackoffLimitTooLow, w.What,
			o.number(0, "spec", "runPolicy", "backoffLimit"), minRestarts)
	}
	refuseDeadline(&worker.Refusals, o, "spec.runPolicy.activeDeadlineSeconds", w.What)
	heard := !vouched(u.GetAnnotations())
	worker.StableToo = append(worker.StableToo, restartRefusals(o, "Worker", heard && (o.has("spec", "elasticPolicy") || commandOf(worker.Template).runsTorch()), w.What)...)
	w.Parts = []Part{worker}
	if shallow(o, "spec", "pytorchReplicaSpecs", "Master") != nil {
		w.Parts = append(w.Parts, Part{Name: "master", Size: 1, Remaining: -1, Active: -1, Ending: -1, Fixed: "there is one master", Template: master,
			StableToo: restartRefusals(o, "Master", heard && commandOf(master).runsTorch(), w.What),
			Labels:    marked(o.labels("spec", "pytorchReplicaSpecs", "Master", "template", "metadata", "labels"), labelReplicaType, "master")})
	}
	w.Stopped = stoppedAt(o)
	w.govern(u, pyTorchJob{}.Kind(), managedBy(o))
	return w
}

// restartRefusals: by Never the first pod that is evicted fails the job, and by ExitCode the first that ends with less than 128, as an agent of
// torchrun does: it takes SIGTERM for an exception, and ends with 1.
func restartRefusals(o object, role string, torch bool, where string) []fleet.Problem {
	var out []fleet.Problem
	switch o.text("spec", "pytorchReplicaSpecs", role, "restartPolicy") {
	case "Never":
		refuse(&out, catalog.RestartPolicyNever, role, where)
	case "ExitCode":
		if torch {
			refuse(&out, catalog.RestartPolicyExitCode, role, where)
		}
	}
	return out
}

// judgePolicy judges the elastic policy, which the operator hands to torchrun by its environment; flags of the command line win.
func (p *Part) judgePolicy(u *unstructured.Unstructured, o object, master *corev1.PodSpec, where string) {
	policy := object(shallow(o, "spec", "elasticPolicy"))
	if policy == nil {
		refuse(&p.Refusals, catalog.ElasticPolicyMissing, where)
		return
	}
	given, t := policyOf(policy), policyOf(policy)
	heard, withMaster := !vouched(u.GetAnnotations()), commandOf(master).runsTorch()
	if heard {
		t = given.under(commandOf(p.Template), p.Template)
	}
	p.Refusals = append(p.Refusals, torchRefusals(t, where)...)
	m := given.under(commandOf(master), master)
	if m.endpoint = ""; heard && withMaster && m != given {
		p.Refusals = append(p.Refusals, torchRefusals(m, "the Master of "+where)...)
	}
	p.bind(policyBounds(given, t, withMaster))
	if policy.has("metrics") {
		refuse(&p.Refusals, catalog.PyTorchScaler, where)
	}
	if t.endpoint != "" {
		// The service of each pod is called as the pod is.
		p.judgeEndpoint(t, true, podHosts{u.GetName() + "-worker-", u.GetNamespace()}, where)
		return
	}
	// The store of the c10d rendezvous lives in the process at the endpoint: when it goes, all members lose each other. Which worker is
	// recalled is a matter of machines, so worker 0 is as likely as any.
	host := policy.text("rdzvHost")
	if backend := policy.text("rdzvBackend"); (backend == "" || backend == "c10d") && (host == "" || strings.HasPrefix(host, u.GetName()+"-worker-")) {
		refuse(&p.Refusals, catalog.RendezvousInWorker, where, u.GetName())
	}
}

// policyOf reads what the policy says to torchrun.
func policyOf(policy object) torchrun {
	t := torchrun{restartsSetting: "spec.elasticPolicy.maxRestarts", confSetting: "spec.elasticPolicy.rdzvConf",
		nodes: "minReplicas and maxReplicas are not both set", restarts: policy.number(0, "maxRestarts"),
		backend: cmp.Or(policy.text("rdzvBackend"), dynamicBackend)} // the operator's default, not that of torchrun
	if policy.has("minReplicas") && policy.has("maxReplicas") {
		t.nodes = fmt.Sprintf("%d:%d", policy.number(0, "minReplicas"), policy.number(0, "maxReplicas"))
	}
	for _, c := range policy.list("rdzvConf") {
		switch c.text("key") {
		case "last_call_timeout":
			t.lastCall = seconds(c.text("value"))
		case "join_timeout":
			t.join = c.text("value")
		}
	}
	return t
}

// policyBounds are those on workers, by the policy or by the flag that stands in its place. A Master that runs torchrun is one of the
// members that are counted; one that only keeps the rendezvous is not.
func policyBounds(given, t torchrun, withMaster bool) (lo, hi Bound) {
	var others int32
	if withMaster {
		others = 1
	}
	lo, hi = t.bounds(others)
	if lo.Field == "" {
		return lo, hi
	}
	if t.nodes == given.nodes {
		lo.Field, hi.Field = "spec.elasticPolicy.minReplicas", "spec.elasticPolicy.maxReplicas"
	}
	if withMaster {
		lo.Field, hi.Field = strings.TrimSuffix(lo.Field, otherParts)+" (without the Master)", strings.TrimSuffix(hi.Field, otherParts)+" (without the Master)"
	}
	return lo, hi
}
