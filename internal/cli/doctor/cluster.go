package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
)

// checkDefinitions compares what the cluster has with what this binary carries.
func checkDefinitions(ctx context.Context, d *doctor) error {
	current, all := 0, 0
	var unread []string
	err := d.EachDefinition(ctx, func(want, have *apiextensionsv1.CustomResourceDefinition, err error) error {
		all++
		switch {
		case apierrors.IsNotFound(err):
			d.Report("kubectl apply --server-side -f deploy/crd", "%s is not installed", want.Name)
		case apierrors.IsForbidden(err):
			// The controller's own account reads no definitions, but every account may ask what is served.
			unread = append(unread, want.Spec.Names.Plural)
		case err != nil:
			return err
		case !examine.SameDefinition(want, have):
			d.Report("kubectl apply --server-side -f deploy/crd of this release", "%s is not that of this release", want.Name)
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
		d.OK("all %d are those of this release", current)
	}
	return nil
}

// served looks whether the API server serves kinds of ours whose definitions this account cannot read.
func (d *doctor) served(plurals []string) error {
	list, err := d.Clients.Core.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
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
		d.Report("kubectl apply --server-side -f deploy/crd", "not installed: %s", strings.Join(missing, ", "))
		return nil
	}
	d.OK("all kinds are served; whether they are of this release, an account that reads customresourcedefinitions can tell")
	return nil
}

// checkController looks for the leader and for a freeze.
func checkController(ctx context.Context, d *doctor) error {
	ns, err := d.Clients.Core.CoreV1().Namespaces().Get(ctx, d.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		d.Report("create it, or name the controller's namespace with -n", "there is no namespace %s", d.Namespace)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", d.Namespace, err)
	}
	if reason, frozen := ns.Annotations[v1alpha1.AnnotationFreeze]; frozen {
		d.Advise("springtide thaw, when the reason is gone", "frozen: %s", reason)
	}
	lease, err := d.Clients.Core.CoordinationV1().Leases(d.Namespace).Get(ctx, cluster.ControllerDeployment, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && d.pending(ctx):
	case apierrors.IsNotFound(err):
		d.Report("start it: springtide run, or the Deployment of deploy/", "no controller has led yet in namespace %s", d.Namespace)
	case err != nil:
		return fmt.Errorf("read the controller's lease: %w", err)
	case leaseHolder(lease) == "":
		d.Report("look at the controller's log", "no controller leads now")
	default:
		d.OK("%s leads", leaseHolder(lease))
	}
	return nil
}

// pending reports a controller that was started and waits for a machine or its volume, and says what for.
func (d *doctor) pending(ctx context.Context) bool {
	pods, err := d.Clients.Core.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelComponent + "=" + v1alpha1.ComponentController})
	if err != nil {
		return false
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		for _, c := range p.Status.Conditions {
			if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
				continue
			}
			fix := "make room for it: see its requests and priority class"
			if strings.Contains(c.Message, "PersistentVolumeClaim") {
				fix = "the cluster has no default StorageClass, or it provides nothing: name one, or keep the store on an emptyDir\n" +
					"helm: --set store.volume.storageClass=NAME, or --set store.type=emptyDir\n" +
					"kustomize: spec.storageClassName of the PersistentVolumeClaim springtide-store, or no component deploy/base/volume"
			}
			d.Report(fix, "the controller was started and its pod %s is Pending: %s", p.Name, c.Message)
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
