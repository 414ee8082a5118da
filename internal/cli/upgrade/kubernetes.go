package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/internal/cli/cell"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
	"github.com/springtide/springtide/internal/cli/usage"
)

// kubernetesRelease is what a release of Kubernetes drops of what Springtide, or what stands next to it, may use.
type kubernetesRelease struct {
	// groups are the versions of scheduling.k8s.io that it serves. Objects stored in another one cannot be read after the upgrade.
	groups []string
	// gates are those that the release before knows and this one does not: a component that is given one does not start.
	gates []string
}

// kubernetesReleases are those that an upgrade may go to. The gates are the difference of test/compatibility_lifecycle/reference/versioned_feature_list.yaml
// of the last release before and of this one.
var kubernetesReleases = map[string]kubernetesRelease{
	"1.37": {
		groups: []string{"v1", "v1beta1", "v1alpha3"},
		gates: []string{"APIServerTracing", "AnonymousAuthConfigurableEndpoints", "AnyVolumeDataSource", "AuthorizeNodeWithSelectors", "AuthorizeWithSelectors", "BtreeWatchCache",
			"ConsistentListFromCache", "GangScheduling", "JobBackoffLimitPerIndex", "JobPodReplacementPolicy", "JobSuccessPolicy", "LogarithmicScaleDown", "OrderedNamespaceDeletion",
			"PodLifecycleSleepAction", "PodLifecycleSleepActionAllowZero", "PreventStaticPodAPIReferences", "RelaxedDNSSearchValidation", "ResilientWatchCacheInitialization",
			"RetryGenerateName", "SchedulerQueueingHints", "SidecarContainers", "StreamingCollectionEncodingToJSON", "StreamingCollectionEncodingToProtobuf",
			"StructuredAuthenticationConfiguration", "WorkloadAwarePreemption"},
	},
}

// kubeletSkew is how many minor versions a kubelet may be older than the API server: Kubernetes' own rule.
const kubeletSkew = 3

// kubernetesChecks are the questions before an upgrade of Kubernetes to a release.
func kubernetesChecks(to string) ([]examine.Check, error) {
	r, ok := kubernetesReleases[to]
	if !ok {
		return nil, usage.Error{Err: fmt.Errorf("flag --to: this version of springtide knows what %s changes, and not what %q does: give one of them, or use the binary of a later release",
			strings.Join(slices.Sorted(maps.Keys(kubernetesReleases)), ", "), to)}
	}
	target := utilversion.MustParseGeneric(to)
	return []examine.Check{
		{Name: "API server", Run: func(_ context.Context, d *examine.Examination) error { return checkStep(d, target) }},
		{Name: "kubelets", Run: func(ctx context.Context, d *examine.Examination) error { return checkKubelets(ctx, d, target) }},
		{Name: "groups", Run: func(ctx context.Context, d *examine.Examination) error { return checkDropped(ctx, d, r.groups, to) }},
		{Name: "flags", Run: func(ctx context.Context, d *examine.Examination) error { return checkFlags(ctx, d, &r, to) }},
	}, nil
}

// checkStep makes sure that the upgrade goes one minor version up.
func checkStep(d *examine.Examination, to *utilversion.Version) error {
	have, named, err := d.ServerVersion()
	if err != nil {
		return err
	}
	switch {
	case have.Major() == to.Major() && have.Minor() >= to.Minor():
		d.OK("version %s: it is there already", named)
	case have.Major() != to.Major() || have.Minor()+1 < to.Minor():
		d.Report("upgrade one minor version after the other", "version %s: %d.%d is more than one minor version ahead", named, to.Major(), to.Minor())
	default:
		d.OK("%s -> %d.%d", named, to.Major(), to.Minor())
	}
	return nil
}

// checkKubelets names kubelets that are too old for the API server to come, or for Springtide.
func checkKubelets(ctx context.Context, d *examine.Examination, to *utilversion.Version) error {
	nodes, err := d.Clients.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	least := utilversion.MustParseGeneric(examine.OldestServer)
	if skew := utilversion.MustParseGeneric(fmt.Sprintf("%d.%d.0", to.Major(), to.Minor()-kubeletSkew)); least.LessThan(skew) {
		least = skew
	}
	var old, unknown []string
	for i := range nodes.Items {
		n := &nodes.Items[i]
		v, err := utilversion.ParseGeneric(n.Status.NodeInfo.KubeletVersion)
		switch {
		case err != nil:
			unknown = append(unknown, n.Name)
		case v.LessThan(least):
			old = append(old, fmt.Sprintf("%s (%s)", n.Name, n.Status.NodeInfo.KubeletVersion))
		}
	}
	switch {
	case len(old) > 0:
		d.Report(fmt.Sprintf("upgrade these kubelets to %d.%d or later first", least.Major(), least.Minor()), "%s older than %d.%d: %s", cell.Count(len(old), "kubelet"), least.Major(), least.Minor(), cell.First(old, cell.NamesShown))
	case len(unknown) > 0:
		d.Advise("look at them yourself", "%s: the kubelet reports no version: %s", cell.Count(len(unknown), "node"), cell.First(unknown, cell.NamesShown))
	default:
		d.OK("%s of %d.%d or later", cell.Count(len(nodes.Items), "kubelet"), least.Major(), least.Minor())
	}
	return nil
}

// checkDropped names the objects of versions of scheduling.k8s.io that the release does not serve, with who owns them.
func checkDropped(ctx context.Context, d *examine.Examination, kept []string, to string) error {
	groups, err := d.Clients.Core.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("ask which groups are served: %w", err)
	}
	var dropped, names []string // versions; objects
	for i := range groups.Groups {
		if groups.Groups[i].Name != cluster.SchedulingGroup {
			continue
		}
		for _, v := range groups.Groups[i].Versions {
			if slices.Contains(kept, v.Version) {
				continue
			}
			found, err := objectsOf(ctx, d.Clients, schema.GroupVersion{Group: cluster.SchedulingGroup, Version: v.Version})
			if err != nil {
				return err
			}
			dropped, names = append(dropped, v.Version), append(names, found...)
		}
	}
	switch {
	case len(names) > 0:
		d.Report("end the workloads that own them, or delete them (kubectl delete workloads,podgroups.scheduling.k8s.io -A --all), and let the controllers make them again after the upgrade",
			"%s of %s cannot be read by %s, and the API server and its garbage collector fail on them: %s", cell.Count(len(names), "object"), strings.Join(dropped, ", "), to, cell.First(names, cell.NamesShown))
	case len(dropped) > 0:
		d.OK("no object is stored as %s/%s, which %s drops", cluster.SchedulingGroup, strings.Join(dropped, ", "), to)
	default:
		d.OK("nothing that %s drops is served", to)
	}
	return nil
}

// objectsOf names all objects of a version of an API, each with its owner.
func objectsOf(ctx context.Context, c *cluster.Clients, gv schema.GroupVersion) ([]string, error) {
	served, err := c.Core.Discovery().ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the kinds of %s: %w", gv, err)
	}
	var out []string
	for _, r := range served.APIResources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || r.Name == "priorityclasses" {
			continue
		}
		all, err := c.Dyn.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s of %s: %w", r.Name, gv, err)
		}
		for i := range all.Items {
			u := &all.Items[i]
			name := fmt.Sprintf("%s %s/%s", r.Kind, u.GetNamespace(), u.GetName())
			if owner := metav1.GetControllerOf(u); owner != nil {
				name += fmt.Sprintf(" of %s %s", owner.Kind, owner.Name)
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// kubeSystem is where kubeadm runs the control plane, and keeps the configuration of kubelets.
const kubeSystem = "kube-system"

// checkFlags looks for gates and versions of APIs that the release does not know: in the flags of the control plane's pods and of our own, and in the
// configuration of kubelets. A managed cluster shows none of its own.
func checkFlags(ctx context.Context, d *examine.Examination, r *kubernetesRelease, to string) error {
	looked := 0
	var bad []string
	for _, namespace := range []string{kubeSystem, d.Namespace} {
		pods, err := d.Clients.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list the pods of %s: %w", namespace, err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if strings.HasPrefix(p.Name, "kube-apiserver") {
				looked++
			}
			for _, c := range p.Spec.Containers {
				for _, what := range r.unknown(slices.Concat(c.Command, c.Args)) {
					bad = append(bad, fmt.Sprintf("%s/%s has %s", namespace, p.Name, what))
				}
			}
		}
	}
	kubelet, err := d.Clients.Core.CoreV1().ConfigMaps(kubeSystem).Get(ctx, "kubelet-config", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read the configuration of kubelets: %w", err)
	}
	if err == nil {
		bad = append(bad, r.unknownOfKubelets(kubelet)...)
	}
	switch {
	case len(bad) > 0:
		d.Report("take them out before the upgrade", "a component does not start with what %s does not know: %s", to, strings.Join(bad, "; "))
	case looked == 0:
		d.Advise("look at the flags of the API server, the controller-manager, the scheduler and the kubelets yourself for: "+strings.Join(r.gates, ", "), "no pod of the API server is seen here")
	default:
		d.OK("no gate and no version of an API that %s does not know", to)
	}
	return nil
}

// unknown are the settings in a command line that the release does not know.
func (r *kubernetesRelease) unknown(args []string) []string {
	var out []string
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		for setting := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(setting), "=")
			version, isGroup := strings.CutPrefix(name, cluster.SchedulingGroup+"/")
			switch strings.TrimLeft(flag, "-") {
			case "feature-gates":
				if slices.Contains(r.gates, name) {
					out = append(out, "--feature-gates "+name)
				}
			case "runtime-config":
				version, _, _ = strings.Cut(version, "/")
				if isGroup && !slices.Contains(r.groups, version) {
					out = append(out, "--runtime-config "+name)
				}
			}
		}
	}
	return out
}

// unknownOfKubelets are the gates of kubeadm's configuration of kubelets that the release does not know.
func (r *kubernetesRelease) unknownOfKubelets(m *corev1.ConfigMap) []string {
	var parsed struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := yaml.Unmarshal([]byte(m.Data["kubelet"]), &parsed); err != nil {
		return []string{fmt.Sprintf("ConfigMap %s/%s cannot be read (%s)", m.Namespace, m.Name, err)}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(parsed.FeatureGates)) {
		if slices.Contains(r.gates, name) {
			out = append(out, fmt.Sprintf("ConfigMap %s/%s has featureGates.%s", m.Namespace, m.Name, name))
		}
	}
	return out
}
