package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/validate/offline"
)

// The oldest API server that resizes pods in place without a feature gate, as README says; what else is needed (the CEL library for
// quantities, podReplacementPolicy of Jobs) is older. And the one that everything was tried with.
const (
	oldestServer = "1.34.0"
	triedServer  = "1.37.0"
)

// serverVersion is the version of the API server, and as it calls it.
func (d *doctor) serverVersion() (*utilversion.Version, string, error) {
	v, err := d.c.core.Discovery().ServerVersion()
	if err != nil {
		return nil, "", fmt.Errorf("the API server does not answer: %w", err)
	}
	have, err := utilversion.ParseGeneric(v.GitVersion)
	if err != nil {
		return nil, "", fmt.Errorf("the API server calls its version %q: %w", v.GitVersion, err)
	}
	return have, v.GitVersion, nil
}

func checkServer(_ context.Context, d *doctor) error {
	have, named, err := d.serverVersion()
	if err != nil {
		return err
	}
	switch {
	case have.LessThan(utilversion.MustParseGeneric(oldestServer)):
		d.report("upgrade the cluster to "+oldestServer+" or later", "version %s is too old", named)
	case have.LessThan(utilversion.MustParseGeneric(triedServer)):
		d.advise("Springtide is tried with "+triedServer+"; most of it works from "+oldestServer+" on", "version %s", named)
	default:
		d.ok("version %s", named)
	}
	return nil
}

var gvrDefinitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// eachDefinition compares the definitions that this binary carries with the cluster's: visit gets both, or the error of reading the cluster's.
func (d *doctor) eachDefinition(ctx context.Context, visit func(want, have *apiextensionsv1.CustomResourceDefinition, err error) error) error {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := crd.Files.ReadFile(file)
		if err != nil {
			return err
		}
		var want, have apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &want); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		raw, err := d.c.dyn.Resource(gvrDefinitions).Get(ctx, want.Name, metav1.GetOptions{})
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, &have)
		}
		if err != nil {
			err = fmt.Errorf("read definition %s: %w", want.Name, err)
		}
		if err := visit(&want, &have, err); err != nil {
			return err
		}
	}
	return nil
}

// checkDefinitions compares what the cluster has with what this binary carries.
func checkDefinitions(ctx context.Context, d *doctor) error {
	current, all := 0, 0
	var unread []string
	err := d.eachDefinition(ctx, func(want, have *apiextensionsv1.CustomResourceDefinition, err error) error {
		all++
		switch {
		case apierrors.IsNotFound(err):
			d.report("kubectl apply --server-side -f deploy/crd", "%s is not installed", want.Name)
		case apierrors.IsForbidden(err):
			// The controller's own account reads no definitions, but every account may ask what is served.
			unread = append(unread, want.Spec.Names.Plural)
		case err != nil:
			return err
		case !sameDefinition(want, have):
			d.report("kubectl apply --server-side -f deploy/crd of this release", "%s is not that of this release", want.Name)
		default:
			current++
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(unread) > 0:
		return d.served(unread)
	case current == all:
		d.ok("all %d are those of this release", current)
	}
	return nil
}

// served looks whether the API server serves kinds of ours whose definitions this account cannot read.
func (d *doctor) served(plurals []string) error {
	list, err := d.c.core.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask which kinds are served: %w", err)
	}
	there := map[string]bool{}
	if list != nil {
		for i := range list.APIResources {
			there[list.APIResources[i].Name] = true
		}
	}
	missing := slices.DeleteFunc(plurals, func(p string) bool { return there[p] })
	if len(missing) > 0 {
		d.report("kubectl apply --server-side -f deploy/crd", "not installed: %s", strings.Join(missing, ", "))
		return nil
	}
	d.ok("all kinds are served; whether they are of this release, an account that reads customresourcedefinitions can tell")
	return nil
}

// sameDefinition compares scope, versions, schemas and columns, with the API server's defaults filled in on both sides.
func sameDefinition(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(a)
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(b)
	return a.Spec.Scope == b.Spec.Scope && equality.Semantic.DeepEqual(a.Spec.Versions, b.Spec.Versions)
}

// checkController looks for the leader and for a freeze.
func checkController(ctx context.Context, d *doctor) error {
	ns, err := d.c.core.CoreV1().Namespaces().Get(ctx, d.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		d.report("create it, or name the controller's namespace with -n", "there is no namespace %s", d.namespace)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", d.namespace, err)
	}
	if reason, frozen := ns.Annotations[v1alpha1.AnnotationFreeze]; frozen {
		d.advise("springtide thaw, when the reason is gone", "frozen: %s", reason)
	}
	lease, err := d.c.core.CoordinationV1().Leases(d.namespace).Get(ctx, controllerDeployment, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && d.pending(ctx):
	case apierrors.IsNotFound(err):
		d.report("start it: springtide run, or the Deployment of deploy/", "no controller has led yet in namespace %s", d.namespace)
	case err != nil:
		return fmt.Errorf("read the controller's lease: %w", err)
	case leaseHolder(lease) == "":
		d.report("look at the controller's log", "no controller leads now")
	default:
		d.ok("%s leads", leaseHolder(lease))
	}
	return nil
}

// pending reports a controller that was started and waits for a machine or its volume, and says what for.
func (d *doctor) pending(ctx context.Context) bool {
	pods, err := d.c.core.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelComponent + "=" + v1alpha1.ComponentController})
	if err != nil {
		return false
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, c := range p.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
				continue
			}
			mend := "make room for it: see its requests and priority class"
			if strings.Contains(c.Message, "PersistentVolumeClaim") {
				mend = "the cluster has no default StorageClass, or it provides nothing: name one, or keep the store on an emptyDir\n" +
					"helm: --set store.volume.storageClass=NAME, or --set store.type=emptyDir\n" +
					"kustomize: spec.storageClassName of the PersistentVolumeClaim springtide-store, or no component deploy/base/volume"
			}
			d.report(mend, "the controller was started and its pod %s is Pending: %s", p.Name, c.Message)
			return true
		}
	}
	return false
}

func leaseHolder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// refusalMend says where to look for the cause of a refusal: the offline judge finds it in the object, or it is in what the object names.
func refusalMend(u *unstructured.Unstructured) string {
	plain := u.DeepCopy()
	unstructured.RemoveNestedField(plain.Object, "status")
	text, err := yaml.Marshal(plain.Object)
	if err == nil {
		judged, err := offline.Files([]offline.Input{{Name: u.GetName(), Text: text}}, offline.Options{})
		if err == nil && slices.ContainsFunc(judged.Findings, func(f offline.Finding) bool { return f.Object != "" }) {
			return "fix the object; springtide validate -f judges it offline"
		}
	}
	return "the object itself is sound: fix what the message names in the cluster; the controller looks again in each cycle"
}

// checkObjects repeats what the controller found wrong with our objects.
func checkObjects(ctx context.Context, d *doctor) error {
	count := 0
	for _, plural := range []string{services, pools, quotas, jobs, festivals} {
		raw, err := d.c.resource(plural, "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return reading(plural, err)
		}
		for i := range raw.Items {
			count++
			var o struct {
				Status struct {
					Conditions []metav1.Condition `json:"conditions"`
				} `json:"status"`
			}
			if err := decode(&raw.Items[i], &o); err != nil {
				return err
			}
			for _, c := range o.Status.Conditions {
				if (c.Type == v1alpha1.ConditionAccepted || c.Type == v1alpha1.ConditionStoreReady) && c.Status == metav1.ConditionFalse {
					name := strings.TrimPrefix(raw.Items[i].GetNamespace()+"/"+raw.Items[i].GetName(), "/")
					d.report(refusalMend(&raw.Items[i]), "%s %s: %s is False: %s", raw.Items[i].GetKind(), name, c.Type, c.Message)
				}
			}
		}
	}
	d.ok("%d were read", count)
	return checkTemplates(ctx, d)
}
