// Package deploy_test judges the manifests as a cluster would: strictly, as kustomize builds them, and against the names in the code.
package deploy_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
)

var update = flag.Bool("update", false, "write generated files anew")

// components are the optional parts of base that go together.
var components = []string{"offline", "postgres", "prometheus-operator", "grafana", "webhook"}

// decoder reads manifests and refuses fields that their kinds do not have, or have twice.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// build is what kustomize makes of base with some components: one manifest an object, kinds of others' CRDs left out.
func build(t *testing.T, components ...string) []runtime.Object {
	t.Helper()
	rendered := render(t, components...)
	d := decoder(t)
	var out []runtime.Object
	for _, doc := range rendered {
		if bytes.Contains(doc, []byte("apiVersion: monitoring.coreos.com/")) {
			continue
		}
		obj, _, err := d.Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, obj)
	}
	return out
}

// render runs kustomize on an overlay as deploy/README.md shows it.
func render(t *testing.T, components ...string) [][]byte {
	t.Helper()
	return renderOf(t, "base", components...)
}

// renderOf is what kustomize makes of a kustomization with components that lie below it.
func renderOf(t *testing.T, base string, components ...string) [][]byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	overlay := "resources: [../" + base + "]\ncomponents:\n"
	for _, c := range components {
		overlay += "  - ../" + base + "/" + c + "\n"
	}
	if err := os.Mkdir(filepath.Join(dir, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine", "kustomization.yaml"), []byte(overlay), 0o644); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, r := range made.Resources() {
		doc, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, doc)
	}
	return out
}

// of picks the objects of one kind.
func of[T runtime.Object](objects []runtime.Object) []T {
	var out []T
	for _, o := range objects {
		if x, ok := o.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// constant reads a string constant from a source file: those that only the code needs are not exported.
func constant(t *testing.T, file, name string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if i := slices.IndexFunc(v.Names, func(n *ast.Ident) bool { return n.Name == name }); i >= 0 {
				value, err := strconv.Unquote(v.Values[i].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				return value
			}
		}
	}
	t.Fatalf("%s: no constant %s", file, name)
	return ""
}

// eachManifest reads every object that a file here holds.
func eachManifest(read func(path string, doc []byte)) error {
	return filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path == "chart" { // made from what lies here
			return filepath.SkipDir
		}
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			read(path, []byte(doc))
		}
		return nil
	})
}

// Every manifest that lies here is read strictly as it stands, whether a kustomization names it or not.
func TestManifestsAreStrict(t *testing.T) {
	d := decoder(t)
	read := 0
	err := eachManifest(func(path string, doc []byte) {
		if filepath.Base(path) == "kustomization.yaml" || strings.HasPrefix(path, "rules") || strings.Contains(path, "prometheus-operator") {
			return
		}
		read++
		o, _, err := d.Decode(doc, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, c := range containers(o) {
			if c.Image != "" && c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
				t.Errorf("%s: the status of container %s does not say why it ended", path, c.Name)
			}
		}
	})
	if err != nil || read < 15 {
		t.Fatalf("%d manifests, %v", read, err)
	}
}

// containers are those of a workload.
func containers(o runtime.Object) []corev1.Container {
	switch w := o.(type) {
	case *appsv1.Deployment:
		return w.Spec.Template.Spec.Containers
	case *appsv1.DaemonSet:
		return w.Spec.Template.Spec.Containers
	case *batchv1.Job:
		return w.Spec.Template.Spec.Containers
	}
	return nil
}

// Each way to build base gives objects that fit together, and no component needs another.
func TestBuilds(t *testing.T) {
	namespace := constant(t, "../internal/cli/cluster/options.go", "ControllerNamespace")
	for _, with := range append([][]string{nil, components}, []string{"offline"}, []string{"postgres"}, []string{"prometheus-operator"}, []string{"volume", "offline"}) {
		t.Run(fmt.Sprint(with), func(t *testing.T) {
			objects := build(t, with...)
			for _, o := range objects {
				if m := o.(metav1.Object); m.GetNamespace() != "" && m.GetNamespace() != namespace {
					t.Errorf("%T %s is in namespace %s, the code expects %s", o, m.GetName(), m.GetNamespace(), namespace)
				}
			}
			if ns := of[*corev1.Namespace](objects); len(ns) != 1 || ns[0].Name != namespace {
				t.Errorf("the namespace is %v, the code expects %s", ns, namespace)
			}
			deployments := of[*appsv1.Deployment](objects)
			if len(deployments) != 1 {
				t.Fatalf("%d deployments", len(deployments))
			}
			checkAccount(t, objects, deployments[0])
			checkVolumes(t, objects, deployments[0])
			checkLabels(t, objects, deployments[0])
			checkPriority(t, objects, deployments[0])
			checkArgs(t, deployments[0])
		})
	}
}

// checkAccount: the pods run as the account that all bindings name, and the bindings name roles that exist.
func checkAccount(t *testing.T, objects []runtime.Object, d *appsv1.Deployment) {
	t.Helper()
	account := d.Spec.Template.Spec.ServiceAccountName
	if as := of[*corev1.ServiceAccount](objects); len(as) != 1 || as[0].Name != account {
		t.Errorf("the deployment's account %s is not the one that there is: %v", account, as)
	}
	check := func(name string, subjects []rbacv1.Subject, ref rbacv1.RoleRef, roles []string) {
		if len(subjects) != 1 || subjects[0].Name != account || subjects[0].Namespace != d.Namespace {
			t.Errorf("binding %s is for %v, not for account %s", name, subjects, account)
		}
		if !slices.Contains(roles, ref.Kind+"/"+ref.Name) {
			t.Errorf("binding %s names %s %s, which is not there", name, ref.Kind, ref.Name)
		}
	}
	var roles []string
	for _, r := range of[*rbacv1.ClusterRole](objects) {
		roles = append(roles, "ClusterRole/"+r.Name)
	}
	for _, r := range of[*rbacv1.Role](objects) {
		roles = append(roles, "Role/"+r.Name)
	}
	for _, b := range of[*rbacv1.ClusterRoleBinding](objects) {
		check(b.Name, b.Subjects, b.RoleRef, roles)
	}
	for _, b := range of[*rbacv1.RoleBinding](objects) {
		check(b.Name, b.Subjects, b.RoleRef, roles)
	}
}

// checkVolumes: every mount has its volume, every volume a mount, and every claim is made here.
func checkVolumes(t *testing.T, objects []runtime.Object, d *appsv1.Deployment) {
	t.Helper()
	spec := &d.Spec.Template.Spec
	var claims, wanted, volumes, mounts []string
	for _, c := range of[*corev1.PersistentVolumeClaim](objects) {
		claims = append(claims, c.Name)
	}
	for _, v := range spec.Volumes {
		volumes = append(volumes, v.Name)
		if v.PersistentVolumeClaim != nil {
			wanted = append(wanted, v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	if !slices.Equal(volumes, mounts) || !slices.Equal(claims, wanted) {
		t.Errorf("volumes %v, mounts %v; claims made %v, used %v", volumes, mounts, claims, wanted)
	}
	store := slices.ContainsFunc(spec.Containers[0].Args, func(a string) bool { return strings.HasPrefix(a, "--store=sqlite:") })
	passing := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "store" && v.EmptyDir != nil })
	if store != (len(claims) == 1 || passing) || passing && len(claims) > 0 {
		t.Errorf("a store in a file %v, on %d claims and an emptyDir %v", store, len(claims), passing)
	}
	want := int32(2)
	if len(claims) > 0 {
		want = 1
	}
	if *d.Spec.Replicas != want || (want == 1) != (d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType) {
		t.Errorf("%d replicas, rolled by %s, on %d claims: one process writes the file of a claim, else one stands by", *d.Spec.Replicas, d.Spec.Strategy.Type, len(claims))
	}
}

// checkPriority: the controller's class is made here, since some clusters refuse their own classes to others' namespaces, and none of ours
// stands above it.
func checkPriority(t *testing.T, objects []runtime.Object, d *appsv1.Deployment) {
	t.Helper()
	classes := of[*schedulingv1.PriorityClass](objects)
	i := slices.IndexFunc(classes, func(c *schedulingv1.PriorityClass) bool { return c.Name == d.Spec.Template.Spec.PriorityClassName })
	if i < 0 {
		t.Fatalf("the priority class %q is not made here", d.Spec.Template.Spec.PriorityClassName)
	}
	for _, c := range classes {
		if c.Value > classes[i].Value {
			t.Errorf("class %s stands above the controller's", c.Name)
		}
	}
}

// checkLabels: the service, and each selector of the deployment's pods, finds them.
func checkLabels(t *testing.T, objects []runtime.Object, d *appsv1.Deployment) {
	t.Helper()
	pod := &d.Spec.Template
	if pod.Labels[v1alpha1.LabelComponent] == "" || pod.Labels[v1alpha1.LabelComponent] == v1alpha1.ComponentFiller {
		t.Errorf("the pods do not carry %s: they could be taken for occupants", v1alpha1.LabelComponent)
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if s, err := metav1.LabelSelectorAsSelector(c.LabelSelector); err != nil || !s.Matches(labels.Set(pod.Labels)) {
			t.Errorf("the spread %v does not select the pods (%v)", c.LabelSelector, err)
		}
	}
	services := of[*corev1.Service](objects)
	// Metrics and the TLS port have a Service each.
	if len(services) != 2 {
		t.Fatalf("%d services", len(services))
	}
	c := &pod.Spec.Containers[0]
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Port.String() != c.Ports[0].Name {
			t.Errorf("a probe asks another port than %s: %+v", c.Ports[0].Name, p)
		}
	}
	for i, flag := range []string{"listen", "serve"} {
		port := c.Ports[i]
		if !slices.Contains(c.Args, fmt.Sprintf("--%s=:%d", flag, port.ContainerPort)) {
			t.Errorf("port %+v and the arguments %v do not agree", port, c.Args)
		}
		if !slices.ContainsFunc(services, func(s *corev1.Service) bool {
			return s.Spec.Ports[0].TargetPort.String() == port.Name && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels))
		}) {
			t.Errorf("no Service of port %s selects the pods", port.Name)
		}
	}
}

// checkArgs: every flag is one that `springtide run` has, none twice, and every variable is set.
func checkArgs(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	c := &d.Spec.Template.Spec.Containers[0]
	known := flags(t, "../internal/cli/run/run.go")
	seen := map[string]bool{}
	for _, a := range c.Args[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !slices.Contains(known, name) || seen[name] {
			t.Errorf("argument %s: `springtide run` has %v, each once", a, known)
		}
		seen[name] = true
		if v, ok := strings.CutPrefix(value, "$("); ok && !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name+")" == v }) {
			t.Errorf("argument %s: the variable is not set", a)
		}
	}
	if c.Args[0] != "run" || !seen["prometheus"] || !seen["store"] || !seen["namespace"] {
		t.Errorf("arguments %v lack run, --prometheus, --store or --namespace", c.Args)
	}
}

// flags lists the flags that a command's source declares: the second argument of every call of a ...Var method.
func flags(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(s.Sel.Name, "Var") {
			if name, ok := call.Args[1].(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(name.Value)
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

// The definitions that are built are those that the binaries carry.
func TestDefinitions(t *testing.T) {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range files {
		text, err := fs.ReadFile(crd.Files, f)
		if err != nil {
			t.Fatal(err)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &d); err != nil {
			t.Fatal(err)
		}
		want = append(want, d.Name)
	}
	for _, d := range of[*apiextensionsv1.CustomResourceDefinition](build(t)) {
		got = append(got, d.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("built %v, embedded %v", got, want)
	}
}

// Fillers stand above offline work, and nothing of ours preempts but the controller, as the clusters' own components do.
func TestPriorityClasses(t *testing.T) {
	filler := constant(t, "../internal/kube/act/pods.go", "FillerPriorityClass")
	classes := map[string]*schedulingv1.PriorityClass{}
	for _, c := range of[*schedulingv1.PriorityClass](build(t, "offline")) {
		classes[c.Name] = c
		if c.Name == "springtide-controller" {
			continue
		}
		if c.PreemptionPolicy == nil || *c.PreemptionPolicy != corev1.PreemptNever || c.GlobalDefault {
			t.Errorf("%s preempts, or is the default of others", c.Name)
		}
	}
	high, low := classes["springtide-offline-high"], classes["springtide-offline-low"]
	if of := constant(t, "../internal/kube/watch/podfacts.go", "offlineHighClass"); classes[of] != high {
		t.Errorf("the code takes %s for the class of high priority", of)
	}
	if classes[filler] == nil || high == nil || low == nil {
		t.Fatalf("classes %v lack %s or those of offline work", classes, filler)
	}
	// 0 is what a pod without a class has.
	if !(classes[filler].Value > 0 && 0 > high.Value && high.Value > low.Value) {
		t.Errorf("%s %d, no class 0, high %d, low %d: want a falling order", filler, classes[filler].Value, high.Value, low.Value)
	}
}
