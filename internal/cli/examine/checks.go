package examine

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/catalog"
	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/validate/offline"
	"github.com/springtide/springtide/store"
)

// The oldest API server that resizes pods in place without a feature gate, as README says; what else is needed (the CEL library for
// quantities, podReplacementPolicy of Jobs) is older. And the one that everything was tried with.
const (
	OldestServer = "1.34.0"
	triedServer  = "1.37.0"
)

// ServerVersion is the version of the API server, and as it calls it.
func (d *Examination) ServerVersion() (*utilversion.Version, string, error) {
	v, err := d.Clients.Core.Discovery().ServerVersion()
	if err != nil {
		return nil, "", fmt.Errorf("the API server does not answer: %w", err)
	}
	have, err := utilversion.ParseGeneric(v.GitVersion)
	if err != nil {
		return nil, "", fmt.Errorf("the API server calls its version %q: %w", v.GitVersion, err)
	}
	return have, v.GitVersion, nil
}

// CheckServer judges the version of the API server.
func CheckServer(_ context.Context, d *Examination) error {
	have, named, err := d.ServerVersion()
	if err != nil {
		return err
	}
	switch {
	case have.LessThan(utilversion.MustParseGeneric(OldestServer)):
		d.Report("upgrade the cluster to "+OldestServer+" or later", "version %s is too old", named)
	case have.LessThan(utilversion.MustParseGeneric(triedServer)):
		d.Advise("Springtide is tried with "+triedServer+"; most of it works from "+OldestServer+" on", "version %s", named)
	default:
		d.OK("version %s", named)
	}
	return nil
}

// EachDefinition compares the definitions that this binary carries with the cluster's: visit gets both, or the error of reading the cluster's.
func (d *Examination) EachDefinition(ctx context.Context, visit func(want, have *apiextensionsv1.CustomResourceDefinition, err error) error) error {
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
		raw, err := d.Clients.Dyn.Resource(cluster.Definitions).Get(ctx, want.Name, metav1.GetOptions{})
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

// SameDefinition compares scope, versions, schemas and columns, with the API server's defaults filled in on both sides.
func SameDefinition(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(a)
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(b)
	return a.Spec.Scope == b.Spec.Scope && equality.Semantic.DeepEqual(a.Spec.Versions, b.Spec.Versions)
}

// refusalMend says where to look for the cause of a refusal: the offline judge finds it in the object, or it is in what the object names.
func refusalFix(u *unstructured.Unstructured) string {
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

// CheckObjects repeats what the controller found wrong with our objects.
func CheckObjects(ctx context.Context, d *Examination) error {
	count := 0
	for _, plural := range []string{cluster.Services, cluster.Pools, cluster.Quotas, cluster.Jobs, cluster.Festivals} {
		raw, err := d.Clients.Resource(plural, "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return cluster.Reading(plural, err)
		}
		for i := range raw.Items {
			count++
			var o struct {
				Status struct {
					Conditions []metav1.Condition `json:"conditions"`
				} `json:"status"`
			}
			if err := cluster.Decode(&raw.Items[i], &o); err != nil {
				return err
			}
			for _, c := range o.Status.Conditions {
				if (c.Type == catalog.ConditionAccepted || c.Type == catalog.ConditionStoreReady) &&
					c.Status == metav1.ConditionFalse {
					name := strings.TrimPrefix(raw.Items[i].GetNamespace()+"/"+raw.Items[i].GetName(), "/")
					d.Report(refusalFix(&raw.Items[i]), "%s %s: %s is False: %s", raw.Items[i].GetKind(), name, c.Type, c.Message)
				}
			}
		}
	}
	d.OK("%d were read", count)
	return checkTemplates(ctx, d)
}

// CheckStore opens the store as the controller does, but creates nothing.
func CheckStore(ctx context.Context, d *Examination) error {
	if d.Store == "" {
		d.Advise("give --store", "not looked at")
		return nil
	}
	s, err := store.Open(ctx, d.Store, store.Options{ReadOnly: true})
	if err != nil {
		d.Report("start the database, or correct the address; until then the controller goes on without a memory", "%v", err)
		return nil
	}
	defer s.Close()
	last, err := s.Last(ctx, 1)
	switch {
	case err != nil:
		return err
	case len(last) == 0:
		d.OK("it answers, and holds no cycle yet")
	default:
		d.OK("it answers; the last cycle it holds is of %s", last[0].Until.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkTemplates looks whether templates may be changed in the namespaces of services that ask for it. The right is optional.
func checkTemplates(ctx context.Context, d *Examination) error {
	all, err := cluster.List[v1alpha1.ElasticService](ctx, d.Clients, cluster.Services, "")
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	for i := range all {
		ns := all[i].Namespace
		if all[i].Spec.RequestsMode != string(fleet.RequestsRecreate) || asked[ns] {
			continue
		}
		asked[ns] = true
		allowed, err := d.May(ctx, &authorizationv1.ResourceAttributes{Namespace: ns, Group: "apps", Resource: "deployments", Subresource: "template", Verb: "patch"})
		if err != nil {
			return err
		}
		if !allowed {
			d.Report(fmt.Sprintf("kubectl create rolebinding springtide-templates -n %s --clusterrole=springtide-templates --serviceaccount=%s:springtide-controller", ns, d.Namespace),
				"ElasticService %s/%s has requestsMode Recreate, and no template of its namespace may be changed", ns, all[i].Name)
		}
	}
	return nil
}

// May asks the API server about one right of the caller.
func (d *Examination) May(ctx context.Context, what *authorizationv1.ResourceAttributes) (bool, error) {
	answer, err := d.Clients.Core.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the right to %s %s: %w", what.Verb, KindText(what.Group, what.Resource, what.Subresource), err)
	}
	return answer.Status.Allowed, nil
}

// KindText renders "resource.group/subresource".
func KindText(group, resource, subresource string) string {
	s := resource
	if group != "" {
		s += "." + group
	}
	if subresource != "" {
		s += "/" + subresource
	}
	return s
}
