package adapter

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pyTorchJob adapts the training operator's PyTorchJob: the replicas of Worker are written. The operator makes missing workers anew under
// their index and takes those of the highest indices away; torchrun in each of them meets the others at the rendezvous, of which nothing
// but the endpoint must stay.
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
	worker := Part{Name: "worker", Size: o.number(1, path...), Remaining: -1, Active: -1, Ending: -1, Path: path,
		Template: o.podSpec("spec", "pytorchReplicaSpecs", "Worker", "template", "spec"),
		Labels:   o.labels("spec", "pytorchReplicaSpecs", "Worker", "template", "metadata", "labels")}
	if w.Finished {
		worker.Remaining = 0
	}
	if o.yes("spec", "runPolicy", "suspend") {
		refuse(&w.Refusals, "JobSuspended", "spec.runPolicy.suspend of %s is true: resume it, or remove it from the members", w.What)
	}
	master := o.podSpec("spec", "pytorchReplicaSpecs", "Master", "template", "spec")
	worker.Refusals = torchPolicyRefusals(u, o, &worker, w.What)
	// Never, or a code that it takes for final, fails the job with the first member that leaves.
	if p := o.text("spec", "pytorchReplicaSpecs", "Worker", "restartPolicy"); p == "Never" {
		refuse(&worker.Refusals, "RestartPolicyNever", "restartPolicy of Worker of %s is Never, and the first member that is recalled fails the job: set OnFailure or ExitCode", w.What)
	}
	if o.has("spec", "runPolicy", "backoffLimit") && o.number(0, "spec", "runPolicy", "backoffLimit") < minRestarts {
		refuse(&worker.Refusals, "BackoffLimitTooLow", "spec.runPolicy.backoffLimit of %s is %d and counts members that are recalled: leave it out, or allow %d", w.What, o.number(0, "spec", "runPolicy", "backoffLimit"), minRestarts)
	}
	// A Master that runs torchrun is one of the members that the policy counts; one that only keeps the rendezvous is not.
	if c := commandOf(master); worker.Min.Field != "" && (c.runs("torchrun") || c.names("torch.distributed.run")) {
		worker.Min = Bound{max(worker.Min.Value-1, 0), worker.Min.Field + " (without the Master)"}
		worker.Max = Bound{worker.Max.Value - 1, worker.Max.Field + " (without the Master)"}
	}
	w.Parts = []Part{worker}
	if shallow(o, "spec", "pytorchReplicaSpecs", "Master") != nil {
		w.Parts = append(w.Parts, Part{Name: "master", Size: 1, Remaining: -1, Active: -1, Ending: -1, Fixed: "there is one master", Template: master,
			Labels: marked(o.labels("spec", "pytorchReplicaSpecs", "Master", "template", "metadata", "labels"), labelReplicaType, "master")})
	}
	return w
}

// torchPolicyRefusals judges the elastic policy, which the operator hands to torchrun by its environment; flags of the command line win.
func torchPolicyRefusals(u *unstructured.Unstructured, o object, worker *Part, where string) []string {
	var out []string
	policy := object(shallow(o, "spec", "elasticPolicy"))
	if policy == nil {
		refuse(&out, "ElasticPolicyMissing", "%s has no spec.elasticPolicy, and waits for a fixed number of members: add one with minReplicas, maxReplicas, maxRestarts and rdzvConf", where)
		return out
	}
	t := torchrun{restartsSetting: "spec.elasticPolicy.maxRestarts", lastCallSetting: "last_call_timeout in spec.elasticPolicy.rdzvConf",
		elastic: policy.has("minReplicas") && policy.has("maxReplicas"), nodes: "minReplicas and maxReplicas are not both set",
		restarts: policy.number(0, "maxRestarts")}
	for _, c := range policy.list("rdzvConf") {
		if c.text("key") == "last_call_timeout" {
			t.lastCall = lastCall("last_call_timeout=" + c.text("value"))
		}
	}
	if t.elastic {
		worker.Min = Bound{policy.number(0, "minReplicas"), "spec.elasticPolicy.minReplicas"}
		worker.Max = Bound{policy.number(0, "maxReplicas"), "spec.elasticPolicy.maxReplicas"}
	}
	if !vouched(u.GetAnnotations()) {
		c := commandOf(worker.Template)
		if v, ok := c.flag("--nnodes"); ok {
			t.nodes, t.elastic = v, strings.Contains(v, ":")
		}
		if v, ok := c.flag("--max-restarts", "--max_restarts"); ok {
			t.restarts, t.restartsSetting = number(v, 0), "--max-restarts"
		}
		if v, ok := c.flag("--rdzv-conf", "--rdzv_conf"); ok {
			t.lastCall, t.lastCallSetting = lastCall(v), "last_call_timeout in --rdzv-conf"
		}
	}
	out = append(out, torchRefusals(t, where)...)
	if policy.has("metrics") {
		refuse(&out, "ForeignScaler", "spec.elasticPolicy.metrics of %s makes a HorizontalPodAutoscaler that scales the workers too: leave it out", where)
	}
	// The store of the c10d rendezvous lives in the process at the endpoint: when it goes, all members lose each other. Which worker is
	// recalled is a matter of machines, so worker 0 is as likely as any.
	host := policy.text("rdzvHost")
	if backend := policy.text("rdzvBackend"); (backend == "" || backend == "c10d") && (host == "" || strings.HasPrefix(host, u.GetName()+"-worker-")) {
		refuse(&out, "RendezvousOnWorker", "the rendezvous of %s lives in a worker, and ends when that one is recalled: set spec.elasticPolicy.rdzvHost to the Master (%s-master-0) or to a service of its own", where, u.GetName())
	}
	return out
}
