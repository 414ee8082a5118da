package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/kube/facts"
	"github.com/springtide/springtide/store/promql"
)

// helm is the binary that `make chart` builds before it runs these tests; without it they are skipped.
func helm(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "bin", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("no bin/helm: make chart builds it")
	}
	return path
}

// template is what Helm makes of the chart for the namespace that kustomize uses.
func template(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), helm(t), append([]string{"template", "springtide", "chart/springtide", "--namespace", "springtide-system",
		"--kube-version", "1.37.2", "--no-hooks"}, args...)...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	return out.Bytes(), nil
}

// byName decodes documents by kind and name.
func byName(t *testing.T, docs [][]byte) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, doc := range docs {
		var o map[string]any
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if o == nil || o["kind"] == "CustomResourceDefinition" {
			continue // a chart of their own
		}
		m := o["metadata"].(map[string]any)
		if o["kind"] == "Namespace" && m["name"] == "springtide-system" {
			continue // the release's
		}
		name := fmt.Sprintf("%s %s/%s", o["kind"], m["namespace"], m["name"])
		if out[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		out[name] = o
	}
	return out
}

// TestChartIsKustomize: for each way to install, Helm and kustomize give the same objects.
func TestChartIsKustomize(t *testing.T) {
	on := func(values ...string) []string {
		var out []string
		for _, v := range values {
			out = append(out, "--set", v)
		}
		return out
	}
	for _, c := range []struct {
		components, values []string
	}{
		{nil, nil},
		{[]string{"volume"}, on("store.type=volume", "controller.replicas=1")},
		{[]string{"postgres"}, on("store.type=postgres")},
		{[]string{"offline"}, on("offline.enabled=true")},
		{[]string{"webhook"}, on("webhook.enabled=true")},
		{[]string{"prometheus-operator", "secure-metrics"}, on("monitoring.secureMetrics=true", "monitoring.serviceMonitor.enabled=true", "monitoring.prometheusRule.enabled=true")},
		{[]string{"prometheus-operator", "grafana"}, on("monitoring.serviceMonitor.enabled=true", "monitoring.prometheusRule.enabled=true", "monitoring.dashboards.enabled=true")},
		{components, on("store.type=postgres", "offline.enabled=true", "monitoring.serviceMonitor.enabled=true", "monitoring.prometheusRule.enabled=true",
			"monitoring.dashboards.enabled=true", "webhook.enabled=true")},
	} {
		t.Run(fmt.Sprint(c.components), func(t *testing.T) {
			made, err := template(t, c.values...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(byName(t, render(t, c.components...)), byName(t, bytes.Split(made, []byte("\n---\n")))); d != "" {
				t.Errorf("(-kustomize +helm):\n%s", d)
			}
		})
	}
}

// TestChartExtras: the node agent and the scheduler are those of their kustomizations.
func TestChartExtras(t *testing.T) {
	base, err := template(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent", "scheduler"} {
		if _, err := os.Stat(filepath.Join("base", name)); err != nil {
			continue
		}
		made, err := template(t, "--set", name+".enabled=true")
		if err != nil {
			t.Fatal(err)
		}
		kustomized, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("base", name))
		if err != nil {
			t.Fatal(err)
		}
		text, err := kustomized.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		got := byName(t, bytes.Split(made, []byte("\n---\n")))
		for o := range byName(t, bytes.Split(base, []byte("\n---\n"))) {
			delete(got, o)
		}
		secure, err := template(t, "--set", name+".enabled=true", "--set", "monitoring.secureMetrics=true")
		if err != nil {
			t.Fatal(err)
		}
		// One for the controller, one for this component.
		if n := bytes.Count(secure, []byte("--metrics-listen=:8444")); n != 2 {
			t.Errorf("%s with monitoring.secureMetrics: %d processes serve metrics by TLS, want 2", name, n)
		}
		if d := cmp.Diff(byName(t, bytes.Split(text, []byte("\n---\n"))), got); d != "" {
			t.Errorf("%s (-kustomize +helm):\n%s", name, d)
		}
	}
}

// TestChartAgentComponents: what values add to the agent is what the components of its kustomization add.
func TestChartAgentComponents(t *testing.T) {
	for _, c := range []struct {
		name       string
		components []string
		values     []string
	}{
		{"processes", []string{"hostpid"}, []string{"agent.hostPID=true"}},
		{"resctrl", []string{"hostpid", "resctrl"}, []string{"agent.resctrl=true"}},
		{"both", []string{"hostpid", "resctrl"}, []string{"agent.hostPID=true", "agent.resctrl=true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := renderOf(t, "base/agent", c.components...)
			args := []string{"--set", "agent.enabled=true"}
			for _, v := range c.values {
				args = append(args, "--set", v)
			}
			made, err := template(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			const set = "DaemonSet springtide-agent/springtide-agent"
			if d := cmp.Diff(byName(t, want)[set], byName(t, bytes.Split(made, []byte("\n---\n")))[set]); d != "" {
				t.Errorf("(-kustomize +helm):\n%s", d)
			}
		})
	}
}

// TestChartPartitions: each partition of the scheduler has a Deployment that finds its own pods alone, and the Service finds those of all.
func TestChartPartitions(t *testing.T) {
	made, err := template(t, "--set", "scheduler.enabled=true", "--set", "scheduler.partitions=3", "--set", "scheduler.replicas=1")
	if err != nil {
		t.Fatal(err)
	}
	var of []appsv1.Deployment
	var service corev1.Service
	for _, doc := range bytes.Split(made, []byte("\n---\n")) {
		var o appsv1.Deployment
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		switch {
		case o.Kind == "Deployment" && strings.HasPrefix(o.Name, "springtide-scheduler"):
			of = append(of, o)
		case o.Kind == "Service" && o.Name == "springtide-scheduler":
			if err := yaml.Unmarshal(doc, &service); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(of) != 3 {
		t.Fatalf("%d Deployments, want 3", len(of))
	}
	for i := range of {
		args, pods := of[i].Spec.Template.Spec.Containers[0].Args, labels.Set(of[i].Spec.Template.Labels)
		if of[i].Name != fmt.Sprint("springtide-scheduler-", i) || *of[i].Spec.Replicas != 1 || !slices.Contains(args, fmt.Sprint("--partition=", i)) || !slices.Contains(args, "--partitions=3") {
			t.Errorf("%s with %d replicas and the arguments %v", of[i].Name, *of[i].Spec.Replicas, args)
		}
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(pods) {
			t.Errorf("the Service does not find the pods of %s", of[i].Name)
		}
		for k := range of {
			finds, err := metav1.LabelSelectorAsSelector(of[k].Spec.Selector)
			if err != nil || finds.Matches(pods) != (i == k) {
				t.Errorf("%s finds the pods of %s: %v, %v", of[k].Name, of[i].Name, finds, err)
			}
		}
	}
	if _, err := template(t, "--set", "scheduler.partitions=0"); err == nil {
		t.Error("no partitions are accepted")
	}
}

// TestChartValues: values reach the objects, and the schema refuses what no template reads.
func TestChartValues(t *testing.T) {
	made, err := template(t, "--set", "image.registry=registry.example/team", "--set", "image.tag=0.1.1", "--set", "controller.prometheus=https://thanos.example",
		"--set", "controller.config.interval=30s", "--set", "controller.nodeSelector.zone=a", "--set", "image.pullSecrets[0].name=key", "--set", "networkPolicy.enabled=false",
		"--set", "controller.extraArgs[0]=--log-level=debug", "--set", "podDisruptionBudget.enabled=false")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"image: registry.example/team/springtide:0.1.1", "--prometheus=https://thanos.example", "interval: 30s", "zone: a", "- name: key",
		"--config=/etc/springtide/config.yaml", "--log-level=debug"} {
		if !bytes.Contains(made, []byte(want)) {
			t.Errorf("no %q in\n%s", want, made)
		}
	}
	where(t)
	for _, gone := range []string{"kind: NetworkPolicy", "kind: PodDisruptionBudget"} {
		if bytes.Contains(made, []byte(gone)) {
			t.Errorf("%s was not asked for", gone)
		}
	}
	for _, bad := range []string{"controller.replica=2", "store.type=mysql", "image.pullPolicy=Sometimes", "controller.prometheus=thanos", "store.type=volume",
		"uninstall.timeoutSeconds=1", "controller.extraArgs[0]=debug"} {
		if _, err := template(t, "--set", bad); err == nil || !strings.Contains(err.Error(), strings.Split(strings.Split(bad, "=")[0], "[")[0][:5]) {
			t.Errorf("--set %s: %v", bad, err)
		}
	}
	old, err := exec.CommandContext(t.Context(), helm(t), "template", "springtide", "chart/springtide", "--kube-version", "1.35.0", "--set", "offline.enabled=true").CombinedOutput()
	if err == nil || !bytes.Contains(old, []byte("needs Kubernetes 1.36")) {
		t.Errorf("offline on 1.35: %s", old)
	}
}

// where checks that controller, scheduler and the uninstall Job land on a cluster of tainted machines, of which each has lent a part.
func where(t *testing.T) {
	t.Helper()
	made, err := template(t, "--no-hooks=false", "--set", "scheduler.enabled=true", "--set", "controller.nodeSelector.zone=a", "--set", "controller.tolerations[0].key=dedicated",
		"--set", "scheduler.tolerations[0].key=dedicated", "--set", "scheduler.nodeSelector.zone=a")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, doc := range bytes.Split(made, []byte("\n---\n")) {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if o.Kind != "Deployment" && o.Kind != "Job" {
			continue
		}
		seen++
		pod := o.Spec.Template.Spec
		dedicated := slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.Key == "dedicated" })
		if !facts.ToleratesHolder(pod.Tolerations) || !dedicated || pod.NodeSelector["zone"] != "a" {
			t.Errorf("%s %s: tolerations %v, node selector %v", o.Kind, o.Metadata.Name, pod.Tolerations, pod.NodeSelector)
		}
	}
	if seen != 3 {
		t.Errorf("%d workloads, want controller, scheduler and the uninstall Job", seen)
	}
}

// workloads are the pod templates of what Helm makes, by kind and name.
func workloads(t *testing.T, made []byte) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	for _, doc := range bytes.Split(made, []byte("\n---\n")) {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o.Spec.Template.Spec.Containers) > 0 {
			out[o.Kind+" "+o.Metadata.Name] = o.Spec.Template
		}
	}
	return out
}

// TestChartPods: each component takes labels, annotations, spread, environment and volumes, next to its own.
func TestChartPods(t *testing.T) {
	plain := []string{"--no-hooks=false", "--set", "agent.enabled=true", "--set", "scheduler.enabled=true",
		"--set", "controller.config.interval=30s"}
	before, err := template(t, plain...)
	if err != nil {
		t.Fatal(err)
	}
	args := plain
	for _, of := range []string{"controller", "agent", "scheduler"} {
		for _, v := range []string{"podLabels.team=" + of, `podLabels.app\.kubernetes\.io/name=other`,
			"podAnnotations.seen=" + of,
			"topologySpreadConstraints[0].maxSkew=3", "topologySpreadConstraints[0].topologyKey=rack",
			"topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway", "extraEnv[0].name=HTTPS_PROXY",
			"extraEnv[0].value=http://" + of, "extraVolumes[0].name=ca", "extraVolumes[0].configMap.name=" + of,
			"extraVolumeMounts[0].name=ca", "extraVolumeMounts[0].mountPath=/etc/ca"} {
			args = append(args, "--set", of+"."+v)
		}
	}
	after, err := template(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	was, now := workloads(t, before), workloads(t, after)
	for name, of := range map[string]string{"Deployment springtide-controller": "controller",
		"DaemonSet springtide-agent": "agent", "Deployment springtide-scheduler": "scheduler",
		"Job springtide-uninstall": "controller"} {
		want, got := was[name], now[name]
		if len(want.Spec.Containers) == 0 {
			t.Fatalf("no %s", name)
		}
		want.Labels["team"] = of
		if want.Annotations == nil {
			want.Annotations = map[string]string{}
		}
		want.Annotations["seen"] = of
		if !strings.HasPrefix(name, "Job") {
			want.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 3, TopologyKey: "rack",
				WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}
		c := &want.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://" + of})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "ca", MountPath: "/etc/ca"})
		want.Spec.Volumes = append(want.Spec.Volumes, corev1.Volume{Name: "ca", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: of}}}})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for _, bad := range []string{"agent.extraVolumeMounts[0].name=ca", "scheduler.extraEnv[0].value=x",
		"controller.podLabel.a=b"} {
		if _, err := template(t, "--set", bad); err == nil {
			t.Errorf("--set %s is accepted", bad)
		}
	}
}

// TestChartClusters: the chart's rules for one of several clusters, or for all, are what `springtide rules` makes of them, and its controller and dashboards read that cluster.
func TestChartClusters(t *testing.T) {
	rule := func(objects map[string]any) map[string]any {
		return objects["PrometheusRule springtide-system/springtide"].(map[string]any)
	}
	plain := func(doc map[string]any) map[string]string {
		out := map[string]string{}
		for _, g := range doc["spec"].(map[string]any)["groups"].([]any) {
			for _, r := range g.(map[string]any)["rules"].([]any) {
				r := r.(map[string]any)
				e, err := parser.NewParser(parser.Options{}).ParseExpr(r["expr"].(string))
				if err != nil {
					t.Fatalf("%v in %v", err, r)
				}
				out[fmt.Sprint(r["record"], r["alert"])] = e.String()
			}
		}
		return out
	}
	for _, c := range []struct {
		values  []string
		cluster promql.Cluster
	}{
		{[]string{`matchers[0]=cluster="eu"`}, promql.Cluster{Matchers: []string{`cluster="eu"`}}},
		{[]string{`matchers[0]=region="eu"`, `matchers[1]=cluster=~"a|b"`, "clusterLabel=cluster", "replicaLabels[0]=ha", "replicaLabels[1]=rr"},
			promql.Cluster{Matchers: []string{`region="eu"`, `cluster=~"a|b"`}, Labels: []string{"cluster"}, ReplicaLabels: []string{"ha", "rr"}}},
		{[]string{"clusterLabel=k8s_cluster"}, promql.Cluster{Labels: []string{"k8s_cluster"}}},
		{[]string{"replicaLabels[0]=ha"}, promql.Cluster{ReplicaLabels: []string{"ha"}}},
	} {
		args := []string{"--set", "monitoring.prometheusRule.enabled=true"}
		for _, v := range c.values {
			args = append(args, "--set", "monitoring.prometheusRule."+v)
		}
		made, err := template(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		want := rule(byName(t, render(t, "prometheus-operator")))
		if err := c.cluster.RewriteRules(want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(plain(want), plain(rule(byName(t, bytes.Split(made, []byte("\n---\n")))))); d != "" {
			t.Errorf("%v (-rewritten +helm):\n%s", c.values, d)
		}
	}
	made, err := template(t, "--set", "monitoring.dashboards.enabled=true", "--set", `controller.prometheusMatchers[0]=cluster="eu"`, "--set", `controller.prometheusMatchers[1]=env!="test"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`--prometheus-matcher=cluster="eu"`, `--prometheus-matcher=env!="test"`, `{"key":"cluster","operator":"=","value":"eu"},{"key":"env","operator":"!=","value":"test"}`} {
		if !strings.Contains(string(made), want) && !strings.Contains(strings.ReplaceAll(string(made), `\"`, `"`), want) {
			t.Errorf("no %s", want)
		}
	}
	if _, err := template(t, "--set", "controller.prometheusMatchers[0]=eu"); err == nil {
		t.Error("a matcher that is none was accepted")
	}
}

// TestChartFiles: the files that the charts read are those that kustomize builds now.
func TestChartFiles(t *testing.T) {
	files, err := filepath.Glob("chart/springtide/files/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var docs [][]byte
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"uninstall.yaml", "agent.yaml", "scheduler.yaml", "prometheusrule-clusters.yaml"}, filepath.Base(f)) {
			docs = append(docs, bytes.Split(text, []byte("\n---\n"))...)
		}
	}
	// The controller's Deployment is that of base alone: components change it, and the templates do the same.
	want := byName(t, render(t, "offline", "webhook", "prometheus-operator", "grafana"))
	for name, o := range byName(t, render(t, "secure-metrics")) {
		if want[name] == nil {
			want[name] = o
		}
	}
	for name, o := range byName(t, render(t, "volume")) {
		if want[name] == nil {
			want[name] = o
		}
	}
	if d := cmp.Diff(want, byName(t, docs)); d != "" {
		t.Errorf("the charts' files are not current: go generate ./deploy/base (-kustomize +files):\n%s", d)
	}
	definitions, err := filepath.Glob("chart/springtide-crds/files/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("crd/springtide.dev_*.yaml")
	if err != nil || len(sources) == 0 || len(sources) != len(definitions) {
		t.Fatalf("%d definitions in the chart, %d in crd (%v)", len(definitions), len(sources), err)
	}
	read := func(paths []string) []string {
		var out []string
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			var o any
			if err := yaml.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			plain, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(plain))
		}
		slices.Sort(out)
		return out
	}
	if d := cmp.Diff(read(sources), read(definitions)); d != "" {
		t.Errorf("the chart's definitions are not current: go generate ./deploy/base (-crd +chart):\n%s", d)
	}
}
