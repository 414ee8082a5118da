package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/springtide/springtide/internal/pages"
	"github.com/springtide/springtide/lab/plane/planetest"
)

// demoArgs make the lab of the tutorial small, and slow enough for a reader who types: a second is a minute of its clock. A report begins after the warm-up.
const demoArgs = "--nodes 40 --services 8 --speed 60 --warm-up 5m"

// patience is how long a command is asked again until it shows what its page says.
const patience = 10 * time.Minute

// shown is what a command of a page must print, and which of the page's placeholders a reader fills from it.
type shown struct {
	command string
	want    string // a regular expression, with placeholders
	take    func(r *reader, out string)
}

// ofTutorial and ofHowto are the commands of the pages, in their order.
var ofTutorial = []shown{
	{command: "make demo", want: `export KUBECONFIG=`},
	{command: "bin/springtide services -A", want: `(?m)^NAMESPACE +NAME .* STATE .*\n(\S+) +(\S+) +Auto .*`, take: func(r *reader, out string) {
		row := strings.Fields(strings.Split(out, "\n")[1])
		r.names["NAMESPACE/NAME"], r.names["NAMESPACE"], r.names["NAME"] = row[0]+"/"+row[1], row[0], row[1]
	}},
	{command: "bin/springtide pools", want: `(?m)^online +Online +Auto `},
	{command: "bin/springtide explain service NAMESPACE/NAME", want: `(?s)NAMESPACE/NAME.*forecast`},
	{command: "bin/springtide loans -o wide", want: ` Lent `, take: func(r *reader, out string) {
		r.names["NODE"] = machineIn(r.t, out, "Lent")
	}},
	{command: "bin/springtide explain node NODE", want: `(?s)NODE.* Lent .*`},
	{command: `bin/springtide recall NODE --reason "trying it out"`, want: `of machine NODE: its recall is asked for`},
	{command: "bin/springtide loans -o wide", want: `(?m)^\S+ +NODE .* (Noticed|Draining|Returned) `},
	{command: `bin/springtide freeze --reason "trying it out"`, want: `frozen: trying it out`},
	{command: "bin/springtide services -A", want: `(?s)^frozen: trying it out.* Frozen `},
	{command: "bin/springtide thaw", want: `thawed; it was frozen: trying it out`},
}

// ofSLO are those of docs/tutorial-slo.md. URL is that of the demo's hint.
var ofSLO = []shown{
	{command: "bin/springtide whatif service NAMESPACE/NAME --prometheus URL",
		want: `(?s)NAMESPACE/NAME from .*\nSpringtide  `},
	{command: "kubectl delete elasticservice NAME -n NAMESPACE", want: `ElasticService/NAME deleted`},
	{command: "bin/springtide init -n NAMESPACE --prometheus URL --out services.yaml", want: `(?s)^|has ElasticService`},
	{command: "bin/springtide whatif -f services.yaml --prometheus URL", want: `(?s)NAMESPACE/NAME from .*\nSpringtide  `},
	{command: "kubectl apply -f services.yaml", want: `ElasticService/NAME applied`},
	{command: "bin/springtide promote service NAMESPACE/NAME --prometheus URL",
		want: `ElasticService NAMESPACE/NAME is in mode Recommend`},
	{command: "bin/springtide promote service NAMESPACE/NAME --prometheus URL",
		want: `ElasticService NAMESPACE/NAME is in mode Auto`},
	{command: "bin/springtide slo -A", want: `OBJECTIVE +MET +BUDGET`},
}

var ofHowto = []shown{
	{command: "springtide validate -f cart.yaml", want: `(?m)^1 object`},
	{command: "kubectl apply -f cart.yaml", want: `ElasticService/cart applied`},
	{command: "springtide services cart -n shop", want: `(?m)^cart +Observe +4-200 +\d`},
	{command: "springtide explain service shop/cart", want: `(?s)shop/cart.*mode Observe`},
	{command: "springtide adopt shop/mail --dry-run=client", want: `(?s)HPAFloor.*`},
	{command: "springtide adopt shop/mail", want: `ElasticService shop/mail created in mode Observe`},
	{command: "springtide explain service shop/mail", want: `(?s)shop/mail.*Observe by HPAFloor`},
	{command: "springtide release shop/mail", want: `shop/mail: nothing to give back: it is in mode Observe`},
	{command: "springtide adopt --kind scaledobject shop/post --dry-run=client", want: `(?s)kind: ElasticService.*name: post`},
	{command: "springtide adopt --kind scaledobject shop/post --take-over --dry-run=server", want: `ScaledObject shop/post is paused`},
	{command: "springtide adopt --kind scaledobject shop/post --take-over", want: `ScaledObject shop/post is paused, and ElasticService shop/post is in mode Auto`},
	{command: "kubectl label node NODE example.com/pool=web", want: `Node/NODE labelled`},
	{command: "kubectl apply -f web.yaml", want: `CapacityPool/web applied`},
	{command: "springtide pools", want: `(?m)^web +Online +Observe +1 `},
	{command: "springtide explain node NODE", want: `(?s)NODE.*web`},
	{command: `springtide recall NODE --reason "the pool goes back to Observe"`, want: `Node NODE: nothing of it is lent`},
	{command: "kubectl create namespace train", want: `Namespace/train created`},
	{command: "springtide validate -f train.yaml", want: `object`},
	{command: "kubectl apply -f train.yaml", want: `(?s)Job/bert applied.*ElasticJob/bert applied`},
	{command: "springtide jobs -n train", want: `(?m)^bert +Low +\d+/[1-9]`},
	{command: "springtide explain job train/bert", want: `(?s)train/bert.*worker`},
	{command: "kubectl label namespace train tenant=train", want: `Namespace/train labelled`},
	{command: "kubectl apply -f quota.yaml", want: `CapacityQuota/train applied`},
	{command: "springtide quotas", want: `(?m)^train `},
	{command: "springtide explain quota train", want: `(?s)train.*guaranteed cpu=40`},
	{command: "springtide explain job train/bert", want: `(?s)Members +[1-9]\d* asked for.*Begins +it does not wait`},
	{command: "springtide validate -f sale.yaml", want: `(?m)^1 object`},
	{command: "springtide festival check -f sale.yaml", want: `(?s)^Plan sale.*Demand against supply`},
	{command: "springtide festival apply -f sale.yaml --approve", want: `FestivalPlan sale applied; approved: true`},
	{command: "springtide festival status -f sale.yaml",
		want: `(?s)^Plan sale.*Waiting, approved: true.*shop/cart +1.5x the load`},
	{command: "kubectl delete festivalplan sale", want: `FestivalPlan/sale deleted`},
	{command: `springtide freeze --reason "INC-1234"`, want: `frozen: INC-1234`},
	{command: "springtide thaw", want: `thawed; it was frozen: INC-1234`},
	{command: `springtide pause service cart -n shop --reason "INC-1234" --for 1h`,
		want: `shop/cart is paused: All, INC-1234, until`},
	{command: "springtide resume service cart -n shop", want: `shop/cart is resumed; it was paused: All, INC-1234`},
}

// TestTutorial is a reader: it types the commands of docs/tutorial.md and docs/howto.md in their order, as the pages
// have them, fills placeholders from what the commands before printed, and applies the objects that the pages show. A
// quoted output of a command is compared with the real one: columns, words and order; numbers are free. At the end it
// presses Ctrl-C. A command that a page shows and the tables above do not hold fails, and so does one that no page
// shows any more.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the lab")
	}
	planetest.Binaries(t)
	springtide(t)
	r := &reader{t: t, names: map[string]string{}, dir: t.TempDir()}
	r.play("docs/tutorial.md", ofTutorial)
	r.hints()
	r.play("docs/tutorial-slo.md", ofSLO)
	r.ownCluster()
	r.play("docs/howto.md", ofHowto)
	r.stop()
}

// reader is who types.
type reader struct {
	t     *testing.T
	names map[string]string
	// dir is where the reader saves what a page shows.
	dir string

	lab        *exec.Cmd
	labOut     *output
	labEnded   chan error
	kubeconfig string
}

// output is what a command printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// play types the commands of one page.
func (r *reader) play(page string, table []shown) {
	r.t.Helper()
	programs := []string{"make", "bin/springtide", "springtide", "kubectl"}
	all, examples, err := pages.Read("..", page, func(line string) bool {
		w := pages.Words(line)
		return len(w) > 0 && slices.Contains(programs, w[0])
	})
	if err != nil {
		r.t.Fatal(err)
	}
	commands := slices.DeleteFunc(all, func(c pages.Shown) bool { return !c.Fenced })
	for i, c := range commands {
		if i >= len(table) || table[i].command != c.Text {
			r.t.Fatalf("%s: the test does not know this command at this place: add it, with what it prints", c)
		}
	}
	if len(table) > len(commands) {
		r.t.Fatalf("%s does not show %q any more", page, table[len(commands)].command)
	}
	for i, c := range commands {
		// The reader saves each example under the name that the next command which reads a file gives it.
		if name := fileOf(c.Text); name != "" && len(examples) > 0 && examples[0].Line < c.Line {
			if err := os.WriteFile(filepath.Join(r.dir, name), []byte(examples[0].Text), 0o600); err != nil {
				r.t.Fatal(err)
			}
			examples = examples[1:]
		}
		r.meet(c, &table[i])
	}
	if len(examples) > 0 {
		r.t.Errorf("%s:%d: no command uses this example", page, examples[0].Line)
	}
}

// fileOf is the file that a command reads.
func fileOf(command string) string {
	w := pages.Words(command)
	if i := slices.Index(w, "-f"); i >= 0 && i+1 < len(w) {
		return w[i+1]
	}
	return ""
}

// meet types a command until it prints what its page says: a loan takes its time, and a status a cycle.
func (r *reader) meet(c pages.Shown, s *shown) {
	r.t.Helper()
	text, want := c.Text, s.want
	for _, name := range slices.SortedFunc(maps.Keys(r.names), func(a, b string) int { return len(b) - len(a) }) {
		text, want = strings.ReplaceAll(text, name, r.names[name]), strings.ReplaceAll(want, name, regexp.QuoteMeta(r.names[name]))
	}
	pattern := regexp.MustCompile(want)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		out, err := r.run(text)
		missing := pages.Printed(out, c.Output)
		if err == nil && pattern.MatchString(out) && missing == "" {
			r.t.Logf("%s: %s\n%s", c, text, out)
			if s.take != nil {
				s.take(r, out)
			}
			return
		}
		if changes(text) || time.Now().After(deadline) {
			if missing != "" {
				r.t.Errorf("%s: the page quotes a line that was not printed, or not in this order:\n%s", c, missing)
			}
			r.t.Fatalf("%s: %s: %v\nwant %s, got\n%s", c, text, err, pattern, out)
		}
		select {
		case err := <-r.labEnded:
			r.t.Fatalf("the lab ended (%v):\n%s", err, r.labOut)
		default:
		}
	}
}

// changes reports whether a command is not one to ask again.
func changes(command string) bool {
	w := pages.Words(command)
	return slices.Contains([]string{"recall", "adopt", "release", "freeze", "thaw", "pause", "resume", "apply",
		"label", "validate", "create", "delete", "init", "promote"}, w[1])
}

// run types one command and returns what it printed.
func (r *reader) run(text string) (string, error) {
	w := pages.Words(text)
	switch w[0] {
	case "make":
		return r.start(w)
	case "kubectl":
		return r.kubectl(w[1:])
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	binary, err := filepath.Abs("../bin/springtide")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary, w[1:]...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "KUBECONFIG="+r.kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start types `make demo`, with a smaller lab, in a process group of its own as a terminal would; the view is plain lines, since no terminal is here.
func (r *reader) start(w []string) (string, error) {
	if r.lab == nil {
		r.lab, r.labOut, r.labEnded = exec.Command(w[0], append(w[1:], "HEADLESS=1", "ARGS="+demoArgs)...), &output{}, make(chan error, 1) //nolint:gosec,noctx // ends by Ctrl-C
		r.lab.Dir, r.lab.Stdout, r.lab.Stderr = "..", r.labOut, r.labOut
		r.lab.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "MAKE") || strings.HasPrefix(s, "MFLAGS=") })
		r.lab.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := r.lab.Start(); err != nil {
			r.t.Fatal(err)
		}
		group := -r.lab.Process.Pid
		r.t.Cleanup(func() { _ = syscall.Kill(group, syscall.SIGKILL) }) // nothing is left of it when the test got to Ctrl-C
		go func() { r.labEnded <- r.lab.Wait() }()
	}
	out := r.labOut.String()
	if m := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(out); m != nil {
		r.kubeconfig = m[1]
	}
	return out, nil
}

// hints types the commands that the demo proposes.
func (r *reader) hints() {
	r.t.Helper()
	all := regexp.MustCompile(`(?m)in another terminal: (\S*springtide .*)$`).FindAllStringSubmatch(r.labOut.String(), -1)
	if len(all) < 3 {
		r.t.Errorf("the demo proposes %d commands:\n%s", len(all), r.labOut)
	}
	for _, m := range all {
		if url := regexp.MustCompile(`--prometheus (\S+)`).FindStringSubmatch(m[1]); url != nil {
			r.names["URL"] = url[1]
		}
		if out, err := r.run(m[1]); err != nil {
			r.t.Errorf("the demo proposes %s: %v\n%s", m[1], err, out)
		}
	}
}

// stop presses Ctrl-C in the lab's terminal.
func (r *reader) stop() {
	r.t.Helper()
	if err := syscall.Kill(-r.lab.Process.Pid, syscall.SIGINT); err != nil {
		r.t.Fatal(err)
	}
	select {
	case err := <-r.labEnded:
		r.t.Logf("make was interrupted: %v", err)
	case <-time.After(5 * time.Minute):
		r.t.Fatalf("the lab did not end:\n%s", r.labOut)
	}
	out := r.labOut.String()
	r.t.Logf("the lab:\n%s", out)
	for _, want := range []string{"the report so far", "SLO", "recalls"} {
		if !strings.Contains(out, want) {
			r.t.Errorf("the report after Ctrl-C has no %q", want)
		}
	}
	if _, err := os.Stat(r.kubeconfig); err == nil || !os.IsNotExist(err) {
		r.t.Errorf("%s is left after Ctrl-C (%v)", r.kubeconfig, err)
	}
}

// machineIn is the machine of the first loan of a wide table that is in a phase.
func machineIn(t *testing.T, table, phase string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if w := strings.Fields(line); slices.Contains(w, phase) {
			return w[1]
		}
	}
	t.Fatalf("no loan is %s:\n%s", phase, table)
	return ""
}

// kubectl plays the few verbs of kubectl that the pages show; it is not installed here.
func (r *reader) kubectl(w []string) (string, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		return "", err
	}
	groups, err := restmapper.GetAPIGroupResources(kubernetes.NewForConfigOrDie(cfg).Discovery())
	if err != nil {
		return "", err
	}
	mapper, dyn, ctx := restmapper.NewDiscoveryRESTMapper(groups), dynamic.NewForConfigOrDie(cfg), r.t.Context()
	switch {
	case w[0] == "apply" && len(w) == 3:
		f, err := os.Open(filepath.Join(r.dir, w[2]))
		if err != nil {
			return "", err
		}
		defer f.Close()
		out := ""
		for d := utilyaml.NewYAMLOrJSONDecoder(f, 4096); ; {
			u := &unstructured.Unstructured{}
			if err := d.Decode(u); err != nil {
				break // the end
			}
			kind := u.GroupVersionKind()
			m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				return out, err
			}
			if _, err := dyn.Resource(m.Resource).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl"}); err != nil {
				return out, err
			}
			out += fmt.Sprintf("%s/%s applied\n", kind.Kind, u.GetName())
		}
		return out, nil
	case w[0] == "create" && len(w) == 3 && w[1] == "namespace":
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": w[2]}}}
		_, err := dyn.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(ctx, u, metav1.CreateOptions{})
		return fmt.Sprintf("Namespace/%s created\n", w[2]), err
	case w[0] == "delete" && len(w) == 3 && w[1] == "festivalplan":
		m, err := mapper.RESTMapping(schema.GroupKind{Group: "springtide.dev", Kind: "FestivalPlan"})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("FestivalPlan/%s deleted\n", w[2]), dyn.Resource(m.Resource).Delete(ctx, w[2], metav1.DeleteOptions{})
	case w[0] == "delete" && len(w) == 5 && w[1] == "elasticservice":
		m, err := mapper.RESTMapping(schema.GroupKind{Group: "springtide.dev", Kind: "ElasticService"})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("ElasticService/%s deleted\n", w[2]),
			dyn.Resource(m.Resource).Namespace(w[4]).Delete(ctx, w[2], metav1.DeleteOptions{})
	case w[0] == "label" && len(w) == 4:
		gvk, err := mapper.KindFor(corev1.SchemeGroupVersion.WithResource(w[1]))
		if err != nil {
			return "", err
		}
		m, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return "", err
		}
		key, value, _ := strings.Cut(w[3], "=")
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
		_, err = dyn.Resource(m.Resource).Patch(ctx, w[2], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return fmt.Sprintf("%s/%s labelled\n", gvk.Kind, w[2]), err
	}
	return "", fmt.Errorf("the test does not know kubectl %s", strings.Join(w, " "))
}

// scaledObject has KEDA's definition, as far as a page needs it, and a ScaledObject of it: the lab knows no KEDA.
func (r *reader) scaledObject(dyn dynamic.Interface) {
	r.t.Helper()
	anything := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "scaledobjects.keda.sh"},
		"spec": map[string]any{"group": "keda.sh", "scope": "Namespaced", "names": map[string]any{"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
			"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "storage": true, "schema": anything}}}}}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := dyn.Resource(definitions).Create(r.t.Context(), definition, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	post := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": map[string]any{"namespace": "shop", "name": "post"},
		"spec": map[string]any{"scaleTargetRef": map[string]any{"name": "post"}, "minReplicaCount": int64(2), "maxReplicaCount": int64(20),
			"triggers": []any{map[string]any{"type": "cpu", "metricType": "Utilization", "metadata": map[string]any{"value": "60"}}}}}}
	scaled := schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		_, err := dyn.Resource(scaled).Namespace("shop").Create(r.t.Context(), post, metav1.CreateOptions{})
		if err == nil {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("the definition is not served: %v", err)
		}
	}
}

// ownCluster makes what the reader of the how-to pages has: two Deployments, an HPA on one of them, and a machine that is in no pool.
func (r *reader) ownCluster() {
	r.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		r.t.Fatal(err)
	}
	core, ctx := kubernetes.NewForConfigOrDie(cfg), r.t.Context()
	must := func(_ any, err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		must(nil, err)
	}
	for _, name := range []string{"cart", "mail", "post"} {
		labels, replicas := map[string]string{"app": name}, int32(4)
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
		must(core.AppsV1().Deployments("shop").Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "main", Image: "registry.example/" + name + ":1", Resources: corev1.ResourceRequirements{Requests: requests}}}}},
		}}, metav1.CreateOptions{}))
	}
	least, percent := int32(2), int32(60)
	must(core.AutoscalingV2().HorizontalPodAutoscalers("shop").Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "mail"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: 20,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "mail"},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}}}}, metav1.CreateOptions{}))
	r.scaledObject(dynamic.NewForConfigOrDie(cfg))
	out, err := r.run("springtide loans -o wide")
	must(nil, err)
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "springtide.example/pool=online"})
	must(nodes, err)
	for _, n := range nodes.Items {
		if strings.Contains(out, " "+n.Name+" ") {
			continue
		}
		must(core.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"springtide.example/pool":null}}}`), metav1.PatchOptions{}))
		r.names["NODE"] = n.Name
		return
	}
	r.t.Fatalf("every machine is lent:\n%s", out)
}
