package adapter

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
)

// load reads a workload that may be lent to.
func load(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../testdata/workloads/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = u.UnmarshalJSON(asJSON) // integers stay integers, as from the API server
	}
	if err != nil {
		t.Fatal(err)
	}
	u.SetUID("uid")
	u.SetResourceVersion("7")
	return u
}

// set writes a field by its path, "spec.tasks.1.replicas"; nil takes it out.
func set(t testing.TB, u *unstructured.Unstructured, path string, value any) {
	t.Helper()
	steps := strings.Split(path, "/")
	var v any = u.Object
	for _, s := range steps[:len(steps)-1] {
		switch x := v.(type) {
		case map[string]any:
			if x[s] == nil {
				x[s] = map[string]any{}
			}
			v = x[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			v = x[i]
		}
	}
	last := steps[len(steps)-1]
	if value == nil {
		delete(v.(map[string]any), last)
		return
	}
	v.(map[string]any)[last] = value
}

func adapterOf(t testing.TB, u *unstructured.Unstructured) Adapter {
	t.Helper()
	a, ok := For(u.GetAPIVersion(), u.GetKind())
	if !ok {
		t.Fatalf("no adapter for %s %s", u.GetAPIVersion(), u.GetKind())
	}
	return a
}

func worker(part string) *v1alpha1.JobMember {
	return &v1alpha1.JobMember{Role: "worker", Part: part, Min: 1, Max: 8}
}

// TestLabels: what the pods of a part are labelled with, by their template and, where the part holds the others together, by the operator.
func TestLabels(t *testing.T) {
	mine := map[string]any{"app": "bert", "number": int64(7)} // one that is no text is no label
	for _, c := range []struct{ file, part, path, want string }{
		{"job", "", "spec/template/metadata/labels", "map[app:bert]"},
		{"jobset", "ps", "spec/replicatedJobs/0/template/spec/template/metadata/labels", "map[app:bert]"},
		{"mpijob", "worker", "spec/mpiReplicaSpecs/Worker/template/metadata/labels", "map[app:bert]"},
		{"mpijob", "launcher", "spec/mpiReplicaSpecs/Launcher/template/metadata/labels", "map[app:bert training.kubeflow.org/job-role:launcher]"},
		{"pytorchjob", "worker", "spec/pytorchReplicaSpecs/Worker/template/metadata/labels", "map[app:bert]"},
		{"pytorchjob", "master", "spec/pytorchReplicaSpecs/Master/template/metadata/labels", "map[app:bert training.kubeflow.org/replica-type:master]"},
		{"raycluster", "gpu_group", "spec/workerGroupSpecs/0/template/metadata/labels", "map[app:bert]"},
		{"raycluster", "head", "spec/headGroupSpec/template/metadata/labels", "map[app:bert ray.io/node-type:head]"},
		{"sparkapplication", "executor", "spec/executor/labels", "map[app:bert]"},
		{"sparkapplication", "driver", "spec/driver/labels", "map[app:bert spark-role:driver]"},
		{"volcanojob", "ps", "spec/tasks/0/template/metadata/labels", "map[app:bert]"},
	} {
		t.Run(c.file+c.part, func(t *testing.T) {
			u := load(t, c.file)
			labels := maps.Clone(mine)
			if c.file == "job" || c.file == "jobset" { // read as types, which take nothing else
				delete(labels, "number")
			}
			set(t, u, c.path, labels)
			w := adapterOf(t, u).Read(u)
			if got := fmt.Sprint(w.Part(c.part).Labels); got != c.want {
				t.Errorf("labels %s, want %s", got, c.want)
			}
		})
	}
}

// TestRead: what each kind says of its parts.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		file  string
		parts string
	}{
		{"job", "=4 left 100 [spec parallelism]"},
		{"mpijob", "worker=4 left -1 [spec mpiReplicaSpecs Worker replicas] in 1..8; launcher=1 left -1 [] fixed"},
		{"pytorchjob", "worker=4 left -1 [spec pytorchReplicaSpecs Worker replicas] in 1..8; master=1 left -1 [] fixed"},
		{"trainjob", "=4 left -1 [] sizes itself"},
		{"jobset", "ps=2 left -1 []..2 by bert-ps-0; workers=4 left -1 [] by bert-workers-0"},
		{"raycluster", "gpu_group=1 left -1 [spec workerGroupSpecs 0 replicas] in 1..2; workers=4 left -1 [spec workerGroupSpecs 1 replicas] in 0..8; head=1 left -1 [] fixed"},
		{"sparkapplication", "executor=4 left 4 [] in 0..8 sizes itself; driver=1 left -1 [] fixed"},
		{"volcanojob", "ps=2 left -1 [spec tasks 0 replicas] in 2; workers=4 left -1 [spec tasks 1 replicas] in 0"},
	} {
		t.Run(c.file, func(t *testing.T) {
			u := load(t, c.file)
			w := adapterOf(t, u).Read(u)
			var parts []string
			for i := range w.Parts {
				parts = append(parts, render(&w.Parts[i]))
			}
			if d := cmp.Diff(c.parts, strings.Join(parts, "; ")); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
			if w.Finished {
				t.Error("it has not begun")
			}
		})
	}
}

func render(p *Part) string {
	s := fmt.Sprintf("%s=%d left %d %v", p.Name, p.Size, p.Remaining, p.Path)
	if p.Min.Field != "" {
		s += fmt.Sprintf(" in %d", p.Min.Value)
	}
	if p.Max.Field != "" {
		s += fmt.Sprintf("..%d", p.Max.Value)
	}
	if p.Child != "" {
		s += " by " + p.Child
	}
	if p.SelfSized {
		s += " sizes itself"
	}
	if p.Fixed != "" {
		s += " fixed"
	}
	return s
}

// TestRefusals: with each of the settings, and nothing else, wrong, the workload is refused with a reason that names it.
func TestRefusals(t *testing.T) {
	launcher := "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/command"
	horovodrun := func(flags string) []any {
		return words("horovodrun --min-np 2 --max-np 16 " + flags + " python train.py")
	}
	const (
		patient = "--elastic-timeout 86400 "
		good    = patient + "--host-discovery-script /etc/mpi/discover_hosts.sh --blacklist-cooldown-range 30 300"
		line    = "spec/template/spec/containers/0/command"
		torch   = "torchrun --rdzv-backend=c10d --rdzv-endpoint=meet.train.svc:29400 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 "
		pytorch = "spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/command"
		servers = "spec/replicatedJobs/0/template/spec/template/spec/containers/0/command"
		members = "spec/replicatedJobs/1/template/spec/template/spec/containers/0/command"
	)
	for _, c := range []struct {
		file, part, path string
		value            any
		low              int    // the member's minimum: 1 unless it is none
		want             string // the start of the refusal; empty where there is none
		names            string // what the sentence has to name
	}{
		{file: "job"},
		{file: "job", path: "spec/suspend", value: true, want: "JobSuspended", names: "spec.suspend"},
		{file: "job", path: "spec/podFailurePolicy", want: "PodFailurePolicyMissing", names: "DisruptionTarget"},
		{file: "job", path: "spec/podReplacementPolicy", value: "TerminatingOrFailed", want: "PodReplacementPolicyMissing", names: "spec.podReplacementPolicy"},
		{file: "job", path: "spec/activeDeadlineSeconds", value: int64(7200), want: "DeadlineTooShort", names: "spec.activeDeadlineSeconds of the Job is 7200"},
		{file: "job", path: "spec/activeDeadlineSeconds", value: int64(86400)},
		{file: "job", path: "spec/template/spec/containers/0/command", value: words("torchrun --rdzv-backend=c10d --rdzv-endpoint=meet.train.svc:29400 --nnodes=1:8 --max-restarts=2000 --rdzv-conf=timeout=60,last_call_timeout=5 train.py")},
		{file: "job", path: "spec/template/spec/containers/0/command", value: words("torchrun --nnodes=4 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 train.py"), want: "FixedMembership", names: "--nnodes"},
		{file: "job", path: "spec/template/spec/containers/0/command", value: []any{"sh", "-c", "python3 -m torch.distributed.run --nnodes 1:8 --rdzv_backend c10d --rdzv_conf last_call_timeout=5 train.py"}, want: "MaxRestartsTooLow", names: "--max-restarts"},
		{file: "job", path: "spec/template/spec/containers/0/command", value: words("/opt/bin/torchrun --rdzv-backend=c10d --rdzv-endpoint=meet.train.svc:29400 --nnodes=1:8 --max-restarts=2000 train.py"), want: "LastCallTooLong", names: "last_call_timeout"},
		{file: "job", path: "spec/template/spec/containers/0/command", value: horovodrun("--host-discovery-script /hosts"), want: "BlacklistWithoutCooldown", names: "--blacklist-cooldown-range"},
		{file: "job", path: line, value: horovodrun(good)},
		{file: "job", path: line, value: words("horovodrun --min-np 8 " + good + " python train.py"), low: none, want: "BoundsDiffer", names: "--min-np 8"},
		{file: "job", path: line, value: words("horovodrun -np 8 " + good + " python train.py"), low: none, want: "BoundsDiffer", names: "-np 8"},
		{file: "job", path: line, value: words("horovodrun --min-np 8 --slots-per-host 4 " + good + " python train.py"), want: "BoundsDiffer", names: "--min-np (in workers) of Job bert is 2"},
		{file: "job", path: line, value: words("horovodrun --max-np 4 " + good + " python train.py"), want: "BoundsDiffer", names: "--max-np"},
		{file: "job", path: line, value: words("horovodrun --min-np $MIN --max-np $MAX " + good + " python train.py")},
		{file: "job", path: line, value: words("horovodrun --max-np 4 --max-np 8 " + good + " python train.py")},
		{file: "job", path: line, value: words("horovodrun --max-np 8 --blacklist-cooldown-range 30 86400 " + good + " ./train.sh --max-np 4 --elastic-timeout 1")},
		{file: "job", path: line, value: words(torch + "--nnodes=4:4 train.py"), want: "FixedMembership", names: "--nnodes 4:4"},
		{file: "job", path: line, value: words(torch + "--nnodes=4:8 train.py"), want: "BoundsDiffer", names: "min is 1, and --nnodes"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:4 train.py"), want: "BoundsDiffer", names: "max is 8, and --nnodes"},
		{file: "job", path: line, value: words(torch + "--nnodes=$MIN:$MAX train.py")},
		{file: "job", path: line, value: words("torchrun --nnodes=1:8 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 train.py"), want: "FixedMembership", names: "--rdzv-backend of torchrun of Job bert is not given"},
		{file: "job", path: line, value: words("torchrun --rdzv_backend static --nnodes=$MIN:$MAX --max-restarts=2000 --rdzv-conf=last_call_timeout=5 train.py"), want: "FixedMembership", names: "set --rdzv-backend c10d"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-backend=etcd-v2 train.py")},
		{file: "job", path: line, value: words("torchrun --standalone --nnodes=1:8 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 train.py")},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-conf=join_timeout=599,last_call_timeout=5 train.py"), want: "JoinTimeoutTooShort", names: "join_timeout in --rdzv-conf of Job bert is 599"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-conf=last_call_timeout=5,join_timeout=600 train.py")},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-conf='last_call_timeout=30,last_call_timeout=5' train.py")},
		{file: "job", path: line, value: words(torch + "--nnodes=2 --nnodes 1:8 train.py")},
		{file: "job", path: line, value: words(torch + "--nnodes 1:8 --nnodes=2 train.py"), want: "FixedMembership", names: "--nnodes 2"},
		{file: "job", path: line, value: words(torch + "--nnodes 1:8 train.py --nnodes=2 --standalone")},
		{file: "job", path: line, value: words(torch + "--nnodes 1:8 -m train --nnodes=2 --max-restarts 3")},
		{file: "job", path: line, value: words("prepare --nnodes=2 && " + torch + "--nnodes 1:8 $FLAGS train.py && judge --nnodes=2")},
		{file: "job", path: line, value: words("torchrun train.py --rdzv-backend=c10d --nnodes=1:8 --max-restarts=2000 --rdzv-conf=last_call_timeout=5"), want: "FixedMembership", names: "--nnodes not given"},
		{file: "job", path: line, value: words("python -mtorch.distributed.run --nnodes=4 train.py"), want: "FixedMembership", names: "--nnodes 4"},
		{file: "job", path: line, value: words("python -m torch.distributed.launch --nnodes=4 train.py"), want: "FixedMembership", names: "--nnodes 4"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=localhost:29400 train.py"), want: "RendezvousOnWorker", names: "localhost:29400"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv_endpoint [::1]:29400 train.py"), want: "RendezvousOnWorker", names: "[::1]"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=${HOSTNAME}:29400 train.py"), want: "RendezvousOnWorker", names: "--rdzv-endpoint"},
		{file: "job", path: line, value: words("torchrun --rdzv-backend=c10d --nnodes=1:8 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 train.py"), want: "RendezvousOnWorker", names: "--rdzv-endpoint not given of Job bert is each member itself"},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=meet.train.svc:29400 train.py")},
		{file: "job", path: line, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=bert-0:29400 train.py")}, // pods without an index have no such name

		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{codes("FailJob", "In", 137, 143)}, ignoring...), want: "PodFailurePolicyOrder", names: "rules.0 of the Job answers exit code 143"},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{codes("Count", "NotIn", 0)}, ignoring...), want: "PodFailurePolicyOrder", names: "Count"},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{codes("Ignore", "In", 143), codes("FailIndex", "In", 137)}, ignoring...), want: "PodFailurePolicyOrder", names: "rules.1 of the Job answers exit code 137"},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{codes("FailJob", "In", 1, 42), codes("Ignore", "In", 137, 143)}, ignoring...)},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{codes("FailJob", "NotIn", 137, 143)}, ignoring...)},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append(slices.Clone(ignoring), codes("FailJob", "In", 137, 143))},
		{file: "job", path: "spec/podFailurePolicy/rules", value: []any{codes("Ignore", "In", 137, 143)}, want: "PodFailurePolicyMissing", names: "DisruptionTarget"},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{conditions("Count", "Ready", "False")}, ignoring...), want: "PodFailurePolicyMissing", names: "DisruptionTarget"},
		{file: "job", path: "spec/podFailurePolicy/rules", value: append([]any{conditions("FailJob", "ConfigIssue", "True")}, ignoring...)},

		{file: "mpijob", part: "worker"},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun("--host-discovery-script /hosts --blacklist-cooldown-range 30 300"), want: "ElasticTimeoutTooShort", names: "--elastic-timeout"},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun(good + " --elastic-timeout=86400")},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun(patient + "--host-discovery-script /hosts --blacklist-cooldown-range 30 86400"), want: "BlacklistCooldownTooLong", names: "86400"},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/suspend", value: true, want: "JobSuspended", names: "spec.runPolicy.suspend"},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/cleanPodPolicy", want: "CleanPodPolicyMissing", names: "spec.runPolicy.cleanPodPolicy"},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/cleanPodPolicy", value: "None", want: "CleanPodPolicyMissing", names: "None"},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/backoffLimit", want: "BackoffLimitTooLow", names: "spec.runPolicy.backoffLimit of MPIJob bert is 6"},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/backoffLimit", value: int64(13), want: "BackoffLimitTooLow", names: "is 13"},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/backoffLimit", value: int64(14)},
		{file: "mpijob", part: "worker", path: "spec/runPolicy/activeDeadlineSeconds", value: int64(86399), want: "DeadlineTooShort", names: "spec.runPolicy.activeDeadlineSeconds"},
		{file: "mpijob", part: "worker", path: launcher, value: words("mpirun -np 4 python train.py"), want: "LauncherNotElastic", names: "horovodrun"},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun(good)},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun(patient + "--blacklist-cooldown-range 30 300"), want: "HostDiscoveryMissing", names: "--host-discovery-script"},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun("--host-discovery-script=/hosts"), want: "BlacklistWithoutCooldown", names: "--blacklist-cooldown-range"},
		{file: "mpijob", part: "worker", path: launcher, value: horovodrun(good + " --reset-limit 10"), want: "ResetLimitTooLow", names: "--reset-limit"},
		{file: "mpijob", part: "worker", path: "spec/slotsPerWorker", value: int64(1), want: "BoundsDiffer", names: "--min-np"},

		{file: "pytorchjob", part: "worker"},
		{file: "pytorchjob", part: "worker", path: "spec/runPolicy/suspend", value: true, want: "JobSuspended", names: "spec.runPolicy.suspend"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy", want: "ElasticPolicyMissing", names: "spec.elasticPolicy"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/minReplicas", want: "FixedMembership", names: "minReplicas"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/minReplicas", value: int64(3), want: "BoundsDiffer", names: "spec.elasticPolicy.minReplicas"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/maxReplicas", value: int64(8), want: "BoundsDiffer", names: "spec.elasticPolicy.maxReplicas"},
		{file: "pytorchjob", part: "worker", path: "spec/pytorchReplicaSpecs/Master/template/spec/containers/0/command", value: words("python keep-rendezvous.py"), want: "BoundsDiffer", names: "spec.elasticPolicy.minReplicas of"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/maxRestarts", value: int64(3), want: "MaxRestartsTooLow", names: "spec.elasticPolicy.maxRestarts"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/rdzvConf", want: "LastCallTooLong", names: "last_call_timeout"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/rdzvConf", value: []any{map[string]any{"key": "last_call_timeout", "value": "30"}}, want: "LastCallTooLong", names: "30s"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/rdzvHost", want: "RendezvousOnWorker", names: "spec.elasticPolicy.rdzvHost"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/rdzvHost", value: "bert-worker-0", want: "RendezvousOnWorker", names: "bert-master-0"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/metrics", value: []any{}, want: "ForeignScaler", names: "spec.elasticPolicy.metrics"},
		{file: "pytorchjob", part: "worker", path: "spec/pytorchReplicaSpecs/Worker/restartPolicy", value: "Never", want: "RestartPolicyNever", names: "restartPolicy"},
		{file: "pytorchjob", part: "worker", path: "spec/pytorchReplicaSpecs/Worker/restartPolicy", value: "ExitCode", want: "RestartPolicyExitCode", names: "Worker of PyTorchJob bert"},
		{file: "pytorchjob", part: "worker", path: "spec/pytorchReplicaSpecs/Worker/restartPolicy", value: "OnFailure"},
		{file: "pytorchjob", part: "worker", path: "spec/runPolicy/activeDeadlineSeconds", value: int64(3600), want: "DeadlineTooShort", names: "spec.runPolicy.activeDeadlineSeconds of PyTorchJob bert is 3600"},
		{file: "pytorchjob", part: "worker", path: "spec/runPolicy/backoffLimit", value: int64(3), want: "BackoffLimitTooLow", names: "spec.runPolicy.backoffLimit"},
		{file: "pytorchjob", part: "worker", path: pytorch, value: words("torchrun --nnodes=4:4 train.py"), want: "FixedMembership", names: "--nnodes 4:4"},
		{file: "pytorchjob", part: "worker", path: pytorch, value: words("torchrun --nnodes=4:9 train.py"), want: "BoundsDiffer", names: "--nnodes (without the Master) of PyTorchJob bert is 3"},
		{file: "pytorchjob", part: "worker", path: pytorch, value: words("torchrun --rdzv-endpoint bert-worker-0.train:29400 train.py"), want: "RendezvousOnWorker", names: "bert-worker-0"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/minReplicas", value: int64(9), want: "FixedMembership", names: "9:9"},
		{file: "pytorchjob", part: "worker", path: "spec/pytorchReplicaSpecs/Master/template/spec/containers/0/command", value: words("torchrun --max-restarts 3 train.py"), want: "MaxRestartsTooLow", names: "the Master of"},
		{file: "pytorchjob", part: "worker", path: pytorch, value: words("torchrun --max-restarts 3 train.py"), want: "MaxRestartsTooLow", names: "--max-restarts"},
		{file: "pytorchjob", part: "worker", path: pytorch, value: words("torchrun --rdzv-backend static train.py"), want: "FixedMembership", names: "--rdzv-backend of torchrun of PyTorchJob bert is static"},
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/rdzvBackend"}, // the operator says c10d
		{file: "pytorchjob", part: "worker", path: "spec/elasticPolicy/rdzvConf", value: []any{map[string]any{"key": "last_call_timeout", "value": "5"}, map[string]any{"key": "join_timeout", "value": "60"}}, want: "JoinTimeoutTooShort", names: "join_timeout in spec.elasticPolicy.rdzvConf of PyTorchJob bert is 60"},

		{file: "trainjob", want: "FixedMembership", names: "spec.trainer.numNodes"},

		{file: "jobset", part: "workers"},
		{file: "jobset", part: "none", want: "PartUnknown", names: "ps, workers"},
		{file: "jobset", part: "workers", path: "spec/suspend", value: true, want: "JobSuspended", names: "spec.suspend"},
		{file: "jobset", part: "workers", path: "spec/replicatedJobs/1/replicas", value: int64(3), want: "RoleMustBeStable", names: "3 Jobs"},
		{file: "jobset", part: "workers", path: "spec/replicatedJobs/1/template/spec/podFailurePolicy", want: "PodFailurePolicyMissing", names: "DisruptionTarget"},
		{file: "jobset", part: "ps", want: "RoleMustBeStable", names: "the ps holds the job together"},
		{file: "jobset", part: "workers", path: "spec/replicatedJobs/1/template/spec/completions", value: int64(4), want: "BoundsDiffer", names: "spec.replicatedJobs.1.template.spec.completions"},
		{file: "jobset", part: "workers", path: "spec/replicatedJobs/1/template/spec/completions", value: int64(8)},
		{file: "jobset", part: "workers", path: "spec/replicatedJobs/1/template/spec/activeDeadlineSeconds", value: int64(60), want: "DeadlineTooShort", names: "spec.replicatedJobs.1.template.spec.activeDeadlineSeconds"},
		{file: "jobset", part: "workers", path: servers, value: words("mpirun -np 4 python train.py"), want: "LauncherNotElastic", names: "ps of JobSet bert"},
		{file: "jobset", part: "workers", path: servers, value: horovodrun(patient + "--host-discovery-script /hosts"), want: "BlacklistWithoutCooldown", names: "ps of JobSet bert"},
		{file: "jobset", part: "workers", path: servers, value: horovodrun(good)},
		{file: "jobset", part: "workers", path: servers, value: words("torchrun --rdzv-backend=c10d --rdzv-endpoint=meet.train.svc:29400 --nnodes=1:10 --max-restarts=3 --rdzv-conf=last_call_timeout=5 train.py"), want: "MaxRestartsTooLow", names: "ps of JobSet bert"},
		{file: "jobset", part: "workers", path: servers, value: words("torchrun --standalone --nnodes=1 evaluate.py")},
		{file: "jobset", part: "workers", path: members, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=bert-workers-0-0.bert:29400 train.py"), want: "RendezvousOnWorker", names: "bert-workers-0-0"},
		{file: "jobset", part: "workers", path: servers, value: words(torch + "--nnodes=1:10 --rdzv-endpoint=bert-workers-0-0.bert.train.svc:29400 train.py"), want: "RendezvousOnWorker", names: "bert-workers-0-0"},
		{file: "jobset", part: "workers", path: members, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=bert-ps-0-0.bert:29400 train.py")},
		{file: "jobset", part: "workers", path: members, value: words(torch + "--nnodes=1:8 --rdzv-endpoint=bert-workers-0-0.train.svc:29400 train.py")}, // a service of another domain

		{file: "raycluster", part: "workers"},
		{file: "raycluster", part: "workers", path: "spec/suspend", value: true, want: "JobSuspended", names: "spec.suspend"},
		{file: "raycluster", part: "workers", path: "spec/workerGroupSpecs/1/suspend", value: true, want: "JobSuspended", names: "spec.workerGroupSpecs.1.suspend"},
		{file: "raycluster", part: "workers", path: "spec/workerGroupSpecs/0/suspend", value: true},
		{file: "raycluster", part: "workers", path: "spec/enableInTreeAutoscaling", value: true, want: "ForeignScaler", names: "spec.enableInTreeAutoscaling"},
		{file: "raycluster", part: "workers", path: "spec/workerGroupSpecs/1/numOfHosts", value: int64(2), want: "MultiHostGroup", names: "numOfHosts"},
		{file: "raycluster", part: "gpu_group", want: "BoundsDiffer", names: "spec.workerGroupSpecs.0.maxReplicas"},
		{file: "raycluster", part: "head", want: "RoleMustBeStable", names: "the head"},

		{file: "sparkapplication", part: "executor", path: "spec/dynamicAllocation/minExecutors", value: int64(1)},
		{file: "sparkapplication", part: "executor", want: "BoundsDiffer", names: "spec.dynamicAllocation.minExecutors"},
		{file: "sparkapplication", part: "driver", want: "RoleMustBeStable", names: "the driver"},

		{file: "job", path: "spec/scheduling", value: gang(int64(1))},
		{file: "job", path: "spec/scheduling", value: gang(int64(3)), want: "BoundsDiffer", names: "spec.scheduling.schedulingPolicy.gang.minCount of Job"},
		{file: "job", path: "spec/scheduling", value: gang(nil)},
		{file: "job", path: "spec/scheduling", value: map[string]any{"schedulingPolicy": map[string]any{"basic": map[string]any{}}}},
		{file: "jobset", part: "workers", path: "spec/replicatedJobs/1/template/spec/scheduling", value: gang(int64(3)), want: "BoundsDiffer", names: "gang.minCount of JobSet"},
		{file: "volcanojob", part: "workers"},
		{file: "volcanojob", part: "ps", want: "RoleMustBeStable", names: "the ps"},
		{file: "volcanojob", part: "workers", path: "spec/minAvailable", want: "BoundsDiffer", names: "spec.minAvailable"},
		{file: "volcanojob", part: "workers", path: "spec/minAvailable", value: int64(4), want: "BoundsDiffer", names: "spec.minAvailable"},
		{file: "volcanojob", part: "workers", path: "spec/minAvailable", value: int64(3)},
		{file: "volcanojob", part: "workers", path: "spec/tasks/1/minAvailable", want: "BoundsDiffer", names: "minAvailable of the task"},
		{file: "volcanojob", part: "workers", path: "spec/policies/0/action", value: "RestartJob", want: "PolicyEndsJob", names: "PodFailed with RestartJob"},
		{file: "volcanojob", part: "workers", path: "spec/policies/0/event", value: "PodPending"},
		{file: "volcanojob", part: "workers", path: "spec/maxRetry", want: "MaxRetryTooLow", names: "spec.maxRetry of Volcano Job bert is 3 (3 by default)"},
		{file: "volcanojob", part: "workers", path: "spec/maxRetry", value: int64(0), want: "MaxRetryTooLow", names: "PodFailed with RestartPod"},
		{file: "volcanojob", part: "workers", path: "spec/maxRetry", value: int64(999), want: "MaxRetryTooLow", names: "is 999"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/1/policies", value: []any{map[string]any{"events": []any{"PodEvicted"}, "action": "AbortJob"}}, want: "PolicyEndsJob", names: "PodEvicted with AbortJob"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/1/policies", value: []any{map[string]any{"event": "*", "action": "RestartTask"}}, want: "PolicyEndsJob", names: "PodEvicted with RestartTask"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/1/policies", value: []any{map[string]any{"exitCode": int64(143), "action": "TerminateJob"}}, want: "PolicyEndsJob", names: "PodFailed with TerminateJob"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/0/template/spec/containers/0/command", value: []any{"sh", "-c", "/usr/sbin/sshd; mpiexec --host $HOSTS -np 4 python train.py"}, want: "LauncherNotElastic", names: "ps of Volcano Job bert"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/0/template/spec/containers/0/command", value: horovodrun(patient + "--host-discovery-script /hosts"), want: "BlacklistWithoutCooldown", names: "ps of Volcano Job bert"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/1/template/spec/containers/0/command", value: words(torch + "--nnodes=1:8 --rdzv-endpoint=bert-workers-0.bert:29400 train.py"), want: "RendezvousOnWorker", names: "bert-workers-0"},
		{file: "volcanojob", part: "workers", path: "spec/tasks/1/template/spec/containers/0/command", value: words(torch + "--nnodes=2:8 train.py"), want: "BoundsDiffer", names: "--nnodes"},
	} {
		t.Run(strings.Join([]string{c.file, c.part, c.path, c.want}, " "), func(t *testing.T) {
			u := load(t, c.file)
			if c.path != "" {
				set(t, u, c.path, c.value)
			}
			m := worker(c.part)
			if c.low == none {
				m.Min = 0
			}
			checkRefusal(t, u, m, c.want, c.names)
		})
	}
}

// gang is the scheduling of a Job whose pods come together; nil follows its parallelism.
func gang(minCount any) any {
	policy := map[string]any{}
	if minCount != nil {
		policy["minCount"] = minCount
	}
	return map[string]any{"schedulingPolicy": map[string]any{"gang": policy}}
}

// none is a minimum of 0, where 1 is the rule.
const none = -1

// codes and conditions are rules of a pod failure policy, ignoring the one that a Job has to have.
func codes(action, operator string, values ...int64) any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return map[string]any{"action": action, "onExitCodes": map[string]any{"operator": operator, "values": list}}
}

func conditions(action, kind, status string) any {
	return map[string]any{"action": action, "onPodConditions": []any{map[string]any{"type": kind, "status": status}}}
}

var ignoring = []any{conditions("Ignore", "DisruptionTarget", "True")}

func words(s string) []any {
	var out []any
	for w := range strings.FieldsSeq(s) {
		out = append(out, w)
	}
	return out
}

func checkRefusal(t *testing.T, u *unstructured.Unstructured, m *v1alpha1.JobMember, want, names string) {
	t.Helper()
	w := adapterOf(t, u).Read(u)
	got := Refusals(&w, m)
	switch {
	case want == "" && len(got) == 0:
	case want == "" || len(got) == 0:
		t.Errorf("refusals = %q, want %q", got, want)
	case got[0].Reason != want || !strings.Contains(got[0].Message, names):
		t.Errorf("the refusal is %q, want %s, naming %q", got[0], want, names)
	}
}

// TestSparkSettings: those of a map whose keys have dots, so that TestRefusals cannot reach them by a path.
func TestSparkSettings(t *testing.T) {
	m := worker("executor")
	m.Min = 0
	for _, c := range []struct{ key, value, version, want, names string }{
		{"spark.decommission.enabled", "true", "3.5.3", "", ""},
		{"spark.decommission.enabled", "false", "3.5.3", "DecommissionOff", "spark.decommission.enabled"},
		{"spark.storage.decommission.enabled", "", "3.5.3", "DecommissionOff", "spark.storage.decommission.enabled"},
		{"spark.stage.ignoreDecommissionFetchFailure", "", "3.5.3", "FetchFailuresCount", "spark.stage.ignoreDecommissionFetchFailure"},
		{"spark.stage.ignoreDecommissionFetchFailure", "", "4.0.1", "", ""},
		{"spark.executor.maxNumFailures", "", "3.4.4", "", ""},
		{"spark.executor.maxNumFailures", "", "3.5.0", "MaxExecutorFailuresTooLow", "is 16 (twice maxExecutors by default)"},
		{"spark.executor.maxNumFailures", "", "4.0.1", "MaxExecutorFailuresTooLow", "is 16"},
		{"spark.executor.maxNumFailures", "999", "3.5.3", "MaxExecutorFailuresTooLow", "is 999"},
		{"spark.executor.maxNumFailures", "", "latest", "MaxExecutorFailuresTooLow", "is 16"},
		{"spark.scheduler.maxRetainedRemovedDecommissionExecutors", "", "4.0.1", "FetchFailuresCount", "maxRetainedRemovedDecommissionExecutors"},
	} {
		u := load(t, "sparkapplication")
		conf := u.Object["spec"].(map[string]any)["sparkConf"].(map[string]any)
		conf[c.key] = c.value
		if c.value == "" {
			delete(conf, c.key)
		}
		set(t, u, "spec/sparkVersion", c.version)
		checkRefusal(t, u, m, c.want, c.names)
	}
	for _, c := range []struct {
		field string
		value any
		want  string
	}{{"enabled", false, "DynamicAllocationOff"}, {"maxExecutors", nil, "DynamicAllocationUnbounded"}} {
		u := load(t, "sparkapplication")
		set(t, u, "spec/dynamicAllocation/"+c.field, c.value)
		checkRefusal(t, u, m, c.want, "spec.dynamicAllocation."+c.field)
	}
}

// TestVouched: what stands in a script of the image is the owner's word; what stands in the API is read all the same.
func TestVouched(t *testing.T) {
	u := load(t, "mpijob")
	set(t, u, "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/command", words("sh /train.sh"))
	checkRefusal(t, u, worker("worker"), "LauncherNotElastic", "vouch")
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationElasticSettings: v1alpha1.ElasticSettingsVouched})
	checkRefusal(t, u, worker("worker"), "", "")
	set(t, u, "spec/runPolicy/cleanPodPolicy", "None")
	checkRefusal(t, u, worker("worker"), "CleanPodPolicyMissing", "cleanPodPolicy")

	// Workers under an elastic policy run torchrun, from a script or not; a Master need not.
	u = load(t, "pytorchjob")
	master := &v1alpha1.JobMember{Role: "master", Stable: true, Min: 1, Max: 1}
	for _, role := range []string{"Master", "Worker"} {
		set(t, u, "spec/pytorchReplicaSpecs/"+role+"/restartPolicy", "ExitCode")
		set(t, u, "spec/pytorchReplicaSpecs/"+role+"/template/spec/containers/0/command", words("sh /train.sh"))
	}
	checkRefusal(t, u, worker("worker"), "RestartPolicyExitCode", "Worker")
	checkRefusal(t, u, master, "", "")
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationElasticSettings: v1alpha1.ElasticSettingsVouched})
	checkRefusal(t, u, &v1alpha1.JobMember{Role: "worker", Part: "worker", Min: 2, Max: 8}, "", "")
}

// TestIndexedPods: a rendezvous at a pod that has a name of its own is one on a member.
func TestIndexedPods(t *testing.T) {
	const line = "torchrun --rdzv-backend=c10d --nnodes=1:8 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 --rdzv-endpoint="
	for endpoint, want := range map[string]string{
		"bert-0:29400": "RendezvousOnWorker", "bert-0.ring.train.svc:29400": "RendezvousOnWorker", "$(MASTER_ADDR):29400": "RendezvousOnWorker",
		"${POD_IP}:29400": "RendezvousOnWorker", "bert-0.train.svc:29400": "", "bert-meet:29400": "", "berta-0.ring:29400": "", "$(MEET):29400": "",
	} {
		u := load(t, "job")
		set(t, u, "spec/completionMode", "Indexed")
		set(t, u, "spec/template/spec/subdomain", "ring")
		set(t, u, "spec/template/spec/containers/0/command", words(line+endpoint+" train.py"))
		set(t, u, "spec/template/spec/containers/0/env", []any{map[string]any{"name": "MASTER_ADDR", "value": "bert-0.ring"},
			map[string]any{"name": "POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}}})
		checkRefusal(t, u, worker(""), want, "--rdzv-endpoint")
	}
}

// TestEnvironment: settings count that stand in the container's variables, and an agent of torchrun ends with 1 after
// SIGTERM.
func TestEnvironment(t *testing.T) {
	u := load(t, "mpijob")
	container := "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/"
	set(t, u, container+"command", words("horovodrun --min-np 2 --max-np 16 --host-discovery-script /hosts --blacklist-cooldown-range 30 300 python train.py"))
	for value, want := range map[string]string{"86400": "", "1200": "ElasticTimeoutTooShort"} {
		set(t, u, container+"env", []any{map[string]any{"name": "HOROVOD_ELASTIC_TIMEOUT", "value": value}})
		checkRefusal(t, u, worker("worker"), want, value)
	}
	u = load(t, "job")
	set(t, u, "spec/podFailurePolicy/rules", append([]any{codes("FailJob", "In", 1)}, ignoring...))
	checkRefusal(t, u, worker(""), "", "")
	set(t, u, "spec/template/spec/containers/0/command", words("torchrun --rdzv-backend=c10d --rdzv-endpoint=meet.train.svc:29400 --nnodes=1:8 --max-restarts=2000 --rdzv-conf=last_call_timeout=5 train.py"))
	checkRefusal(t, u, worker(""), "PodFailurePolicyOrder", "exit code 1,")

	u = load(t, "job")
	set(t, u, "spec/template/spec/containers/0/command", words("torchrun train.py"))
	for backend, want := range map[string]string{"c10d": "", "static": "FixedMembership", "": "FixedMembership"} {
		set(t, u, "spec/template/spec/containers/0/env", []any{map[string]any{"name": "PET_NNODES", "value": "1:8"}, map[string]any{"name": "PET_MAX_RESTARTS", "value": "2000"},
			map[string]any{"name": "PET_RDZV_CONF", "value": "last_call_timeout=5"}, map[string]any{"name": "PET_RDZV_BACKEND", "value": backend},
			map[string]any{"name": "PET_RDZV_ENDPOINT", "value": "meet.train.svc:29400"}})
		checkRefusal(t, u, worker(""), want, "--rdzv-backend")
	}
}

// TestStableEvicted: a festival plan that says takeStable evicts stable members too, so what an eviction breaks is refused of them as well;
// what a resize would break is not.
func TestStableEvicted(t *testing.T) {
	for _, c := range []struct {
		file, part, path string
		value            any
		want, names      string
	}{
		{"job", "ps", "spec/podFailurePolicy", nil, "PodFailurePolicyMissing", "DisruptionTarget"},
		{"job", "ps", "spec/podReplacementPolicy", nil, "PodReplacementPolicyMissing", "spec.podReplacementPolicy"},
		{"job", "ps", "spec/template/spec/containers/0/command", words("torchrun --nnodes=2 train.py"), "", ""},
		{"jobset", "ps", "spec/replicatedJobs/0/template/spec/podFailurePolicy", nil, "PodFailurePolicyMissing", "DisruptionTarget"},
		{"jobset", "ps", "spec/replicatedJobs/0/replicas", int64(2), "", ""},
		{"pytorchjob", "master", "spec/pytorchReplicaSpecs/Master/restartPolicy", "Never", "RestartPolicyNever", "Master"},
		{"pytorchjob", "master", "spec/pytorchReplicaSpecs/Master/restartPolicy", "ExitCode", "RestartPolicyExitCode", "Master"},
		{"pytorchjob", "worker", "spec/runPolicy/activeDeadlineSeconds", int64(60), "", ""}, // who keeps its size waits for no room
		{"pytorchjob", "worker", "spec/runPolicy/backoffLimit", int64(3), "BackoffLimitTooLow", "spec.runPolicy.backoffLimit"},
		{"pytorchjob", "worker", "spec/elasticPolicy", nil, "", ""},
		{"volcanojob", "ps", "spec/tasks/0/policies/0/action", "AbortJob", "PolicyEndsJob", "AbortJob"},
		{"volcanojob", "ps", "spec/maxRetry", nil, "MaxRetryTooLow", "PodEvicted with RestartJob"},
		{"raycluster", "workers", "spec/workerGroupSpecs/1/suspend", true, "JobSuspended", "suspend"},
		{"trainjob", "", "", nil, "", ""},
	} {
		u := load(t, c.file)
		if c.path != "" {
			set(t, u, c.path, c.value)
		}
		checkRefusal(t, u, &v1alpha1.JobMember{Role: "kept", Part: c.part, Stable: true, Min: 2, Max: 2}, c.want, c.names)
	}
	u := load(t, "trainjob")
	checkRefusal(t, u, &v1alpha1.JobMember{Role: "kept", Stable: true, Min: 2, Max: 4}, "FixedMembership", "stable: true")
}

// TestRetriesUncharged: where no policy starts a recalled pod again nothing is charged, and the retries are the
// owner's.
func TestRetriesUncharged(t *testing.T) {
	u := load(t, "volcanojob")
	set(t, u, "spec/maxRetry", nil)
	set(t, u, "spec/policies", nil)
	checkRefusal(t, u, worker("workers"), "", "")
	set(t, u, "spec/tasks/1/policies", []any{map[string]any{"event": "*", "action": "RestartPod"}})
	checkRefusal(t, u, worker("workers"), "MaxRetryTooLow", "task workers")
}

// TestStableMembers: who keeps its size on stable capacity is not asked how it would leave.
func TestStableMembers(t *testing.T) {
	for file, part := range map[string]string{"job": "ps", "mpijob": "launcher", "pytorchjob": "master", "jobset": "ps", "raycluster": "head", "volcanojob": "ps"} {
		u := load(t, file)
		m := &v1alpha1.JobMember{Role: part, Stable: true, Min: 2, Max: 2}
		checkRefusal(t, u, m, "", "")
		m.Max = 3
		checkRefusal(t, u, m, "RoleMustBeStable", "keeps its size")
		m.Max, m.Stable = 2, false
		checkRefusal(t, u, m, "RoleMustBeStable", "never runs on lent capacity")
	}
}

// TestExecutorSize: an executor asks for its heap and what the JVM takes next to it.
func TestExecutorSize(t *testing.T) {
	for _, c := range []struct {
		executor  map[string]any
		cpu, want string
	}{
		{map[string]any{}, "1", "1408Mi"},
		{map[string]any{"cores": int64(4), "memory": "16g"}, "4", "18022Mi"},
		{map[string]any{"cores": int64(4), "coreRequest": "500m", "memory": "512m", "memoryOverhead": "100"}, "500m", "612Mi"},
		{map[string]any{"memory": "2Gi", "memoryOverhead": "1024k"}, "1", "2049Mi"},
		{map[string]any{"memory": "much"}, "1", "1408Mi"},
	} {
		u := load(t, "sparkapplication")
		set(t, u, "spec/executor", c.executor)
		w := (sparkApplication{}).Read(u)
		got := w.Part("executor").Template.Containers[0].Resources.Requests
		want := resource.MustParse(c.want)
		if got.Cpu().String() != c.cpu || got.Memory().Value()>>20 != want.Value()>>20 {
			t.Errorf("%v asks for %s and %d MiB, want %s and %d", c.executor, got.Cpu(), got.Memory().Value()>>20, c.cpu, want.Value()>>20)
		}
	}
}

// TestFinished: a workload that is over is refused nothing and has no work left.
func TestFinished(t *testing.T) {
	for file, status := range map[string]map[string]any{
		"job": condition("Complete"), "mpijob": condition("Succeeded"), "pytorchjob": condition("Failed"), "jobset": condition("Completed"),
		"trainjob": condition("Complete"), "volcanojob": {"state": map[string]any{"phase": "Completed"}},
	} {
		u := load(t, file)
		u.Object["status"] = status
		w := adapterOf(t, u).Read(u)
		if !w.Finished || w.Parts[0].Remaining != 0 || Refusals(&w, worker("none")) != nil {
			t.Errorf("%s: finished %t, %d left", file, w.Finished, w.Parts[0].Remaining)
		}
		if c, ok := status["conditions"].([]any); ok {
			c[0].(map[string]any)["status"] = "False"
			if w := adapterOf(t, u).Read(u); w.Finished {
				t.Errorf("%s: the condition does not hold", file)
			}
		}
	}
	u := load(t, "sparkapplication")
	set(t, u, "status/applicationState/state", "COMPLETED") // its status still lists executors that run
	if w := (sparkApplication{}).Read(u); !w.Finished || w.Parts[0].Remaining != 0 {
		t.Errorf("sparkapplication: finished %t, %d left", w.Finished, w.Parts[0].Remaining)
	}
}

func condition(kind string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True"}}}
}

// TestPartOf: pods are distinguished by the labels of their operators.
func TestPartOf(t *testing.T) {
	for _, c := range []struct {
		file   string
		labels map[string]string
		want   string
	}{
		{"job", nil, ""},
		{"mpijob", map[string]string{labelJobRole: "launcher"}, "launcher"},
		{"pytorchjob", map[string]string{labelReplicaType: "master", labelJobRole: "master"}, "master"},
		{"raycluster", map[string]string{labelRayNodeType: "worker", labelRayGroup: "gpu_group"}, "gpu_group"},
		{"raycluster", map[string]string{labelRayNodeType: "head", labelRayGroup: "headgroup"}, "head"},
		{"sparkapplication", map[string]string{labelSparkRole: "driver"}, "driver"},
		{"volcanojob", map[string]string{labelVolcanoTask: "ps"}, "ps"},
		{"jobset", map[string]string{labelReplicatedJob: "ps"}, "ps"},
	} {
		u := load(t, c.file)
		a := adapterOf(t, u)
		got := a.PartOf(c.labels)
		w := a.Read(u)
		if got != c.want || w.Part(got) == nil {
			t.Errorf("%s: part %q, want %q, one of %s", c.file, got, c.want, w.partNames())
		}
		for k := range c.labels {
			if !slices.Contains(RoleLabels, k) {
				t.Errorf("label %s is not kept of pods", k)
			}
		}
	}
}

// TestResize: the patch tests what it depends on, and changes one field.
func TestResize(t *testing.T) {
	notes := map[string]string{"springtide.dev/leader-epoch": "7"}
	for _, c := range []struct {
		file, part string
		victims    []string
		change     func(*unstructured.Unstructured)
		want       string
	}{
		{"job", "", []string{"a-0"}, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) },
			`test /metadata/uid "uid"; test /spec/parallelism 4; add /spec/parallelism 6; add /metadata/annotations/springtide.dev~1leader-epoch "7"`},
		{"mpijob", "worker", nil, func(*unstructured.Unstructured) {},
			`test /metadata/resourceVersion "7"; test /metadata/uid "uid"; test /spec/mpiReplicaSpecs/Worker/replicas 4; add /spec/mpiReplicaSpecs/Worker/replicas 6; add /metadata/annotations {"springtide.dev/leader-epoch":"7"}`},
		{"mpijob", "worker", nil, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"a": "b"})
			set(t, u, "spec/mpiReplicaSpecs/Worker/replicas", nil)
		}, `test /metadata/resourceVersion "7"; test /metadata/uid "uid"; add /spec/mpiReplicaSpecs/Worker/replicas 6; add /metadata/annotations/springtide.dev~1leader-epoch "7"`},
		{"raycluster", "workers", nil, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) },
			`test /metadata/uid "uid"; test /spec/workerGroupSpecs/1/groupName "workers"; test /spec/workerGroupSpecs/1/replicas 4; add /spec/workerGroupSpecs/1/replicas 6; add /metadata/annotations/springtide.dev~1leader-epoch "7"`},
		{"raycluster", "workers", []string{"bert-workers-x", "bert-workers-y"}, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) },
			`test /metadata/uid "uid"; test /spec/workerGroupSpecs/1/groupName "workers"; test /spec/workerGroupSpecs/1/replicas 4; add /spec/workerGroupSpecs/1/replicas 6; add /spec/workerGroupSpecs/1/scaleStrategy {"workersToDelete":["bert-workers-x","bert-workers-y"]}; add /metadata/annotations/springtide.dev~1leader-epoch "7"`},
	} {
		u := load(t, c.file)
		c.change(u)
		w := adapterOf(t, u).Read(u)
		body, err := Resize(u, w.Part(c.part), 6, c.victims, notes)
		if err != nil {
			t.Fatal(err)
		}
		var ops []struct {
			Op, Path string
			Value    json.RawMessage
		}
		if err := json.Unmarshal(body, &ops); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range ops {
			got = append(got, fmt.Sprintf("%s %s %s", o.Op, o.Path, o.Value))
		}
		if d := cmp.Diff(c.want, strings.Join(got, "; ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, d)
		}
	}
	u := load(t, "raycluster")
	w := adapterOf(t, u).Read(u)
	set(t, u, "spec/workerGroupSpecs", []any{})
	if _, err := Resize(u, w.Part("workers"), 6, nil, notes); err == nil {
		t.Error("a group that is gone was resized")
	}
}

// TestKinds holds the list of the API, the rule in its definition and the adapters together.
func TestKinds(t *testing.T) {
	var kinds []string
	for _, a := range All() {
		kinds = append(kinds, a.Kind().GroupVersion().String()+" "+a.Kind().Kind)
		if a.Resource().GroupVersion() != a.Kind().GroupVersion() {
			t.Errorf("%v is served as %v", a.Kind(), a.Resource())
		}
	}
	slices.Sort(kinds)
	if d := cmp.Diff(v1alpha1.ElasticKinds, kinds); d != "" {
		t.Errorf("v1alpha1.ElasticKinds (-list +adapters):\n%s", d)
	}
	text, err := fs.ReadFile(crd.Files, "springtide.dev_elasticjobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rule := strings.Join(strings.Fields(string(text)), " ")
	if want := "in ['" + strings.Join(v1alpha1.ElasticKinds, "', '") + "']"; !strings.Contains(strings.ReplaceAll(rule, "''", "'"), want) {
		t.Errorf("the rule on workloadRef does not say %s", want)
	}
}

// TestGarbled: an object of any shape is read without harm, and is never taken for one that may be lent to.
func TestGarbled(t *testing.T) {
	for _, file := range []string{"job", "mpijob", "pytorchjob", "trainjob", "jobset", "raycluster", "sparkapplication", "volcanojob"} {
		for _, spec := range []any{nil, "text", []any{}, map[string]any{"tasks": "x", "workerGroupSpecs": []any{"x"}, "replicatedJobs": map[string]any{}}} {
			u := load(t, file)
			u.Object["spec"] = spec
			w := adapterOf(t, u).Read(u)
			if got := Refusals(&w, worker("workers")); len(got) == 0 {
				t.Errorf("%s with spec %v is accepted", file, spec)
			}
		}
	}
}
