package deploy_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
)

// admission is what of a manifest decides whether its absence, or its fault, can hold up others' requests.
type admission struct {
	Kind string `json:"kind"`
	Spec struct {
		FailurePolicy    string `json:"failurePolicy"`
		MatchConstraints struct {
			ResourceRules []groups `json:"resourceRules"`
		} `json:"matchConstraints"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
	} `json:"spec"`
	Rules    []groups `json:"rules"`
	Webhooks []struct {
		FailurePolicy  string   `json:"failurePolicy"`
		TimeoutSeconds int      `json:"timeoutSeconds"`
		Rules          []groups `json:"rules"`
	} `json:"webhooks"`
}

type groups struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
	Names     []string `json:"resourceNames"`
}

// blocks says how an object could hold up requests of others; empty where it cannot. An admission policy fails closed unless it says Ignore, and
// that is for our own kinds alone.
func blocks(doc []byte) (string, error) {
	var a admission
	if err := yaml.Unmarshal(doc, &a); err != nil {
		return "", err
	}
	ours := func(g groups) bool { return slices.Equal(g.APIGroups, []string{v1alpha1.GroupVersion.Group}) }
	switch a.Kind {
	case "MutatingWebhookConfiguration":
		return "a webhook that changes objects", nil
	case "ValidatingWebhookConfiguration":
		for _, w := range a.Webhooks {
			if w.FailurePolicy != "Ignore" || w.TimeoutSeconds < 1 || w.TimeoutSeconds > 5 || slices.ContainsFunc(w.Rules, func(g groups) bool { return !ours(g) }) {
				return "a webhook that fails closed, waits long or is asked about others' kinds", nil
			}
		}
		if len(a.Webhooks) == 0 {
			return "a webhook that nothing is known of", nil
		}
	case "APIService":
		return "an API that is served by a pod", nil
	case "CustomResourceDefinition":
		if a.Spec.Conversion.Strategy == "Webhook" {
			return "a conversion by webhook", nil
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		rules := a.Spec.MatchConstraints.ResourceRules
		if own := len(rules) > 0 && !slices.ContainsFunc(rules, func(g groups) bool { return !ours(g) }); !own && a.Spec.FailurePolicy != "Ignore" {
			return "an admission policy on others' kinds that fails closed", nil
		}
	case "ClusterRole", "Role":
		for _, r := range a.Rules {
			if slices.ContainsFunc(r.APIGroups, func(g string) bool { return g == "admissionregistration.k8s.io" || g == "*" }) &&
				slices.ContainsFunc(r.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) }) {
				if len(r.Names) > 0 && !slices.ContainsFunc(r.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "patch"}, v) }) {
					continue // its own webhook's caBundle
				}
				return "a right to write admission", nil
			}
		}
	}
	return "", nil
}

// Nothing of ours can block the cluster, in no manifest that lies here.
func TestNothingBlocks(t *testing.T) {
	read := 0
	err := eachManifest(func(path string, doc []byte) {
		read++
		if by, err := blocks(doc); by != "" || err != nil {
			t.Errorf("%s: %s (%v)", path, by, err)
		}
	})
	if err != nil || read < 20 {
		t.Fatalf("%d manifests, %v", read, err)
	}
}

// The judge refuses these, and lets those pass.
func TestBlocksKnows(t *testing.T) {
	policy := func(group, failure string) string {
		return "kind: ValidatingAdmissionPolicy\nspec: {" + failure + " matchConstraints: {resourceRules: [{apiGroups: ['" + group + "']}]}}"
	}
	for doc, refused := range map[string]bool{
		"kind: ValidatingWebhookConfiguration":                                    true,
		"kind: MutatingWebhookConfiguration\nwebhooks: [{failurePolicy: Ignore}]": true,
		"kind: ValidatingWebhookConfiguration\nwebhooks: [{failurePolicy: Ignore, timeoutSeconds: 3, rules: [{apiGroups: [springtide.dev]}]}]":  false,
		"kind: ValidatingWebhookConfiguration\nwebhooks: [{failurePolicy: Ignore, timeoutSeconds: 30, rules: [{apiGroups: [springtide.dev]}]}]": true,
		"kind: ValidatingWebhookConfiguration\nwebhooks: [{failurePolicy: Ignore, timeoutSeconds: 3, rules: [{apiGroups: ['']}]}]":              true,
		"kind: ValidatingWebhookConfiguration\nwebhooks: [{timeoutSeconds: 3, rules: [{apiGroups: [springtide.dev]}]}]":                         true,
		"kind: ClusterRole\nrules: [{apiGroups: [admissionregistration.k8s.io], resourceNames: [springtide], verbs: [get, patch]}]":             false,
		"kind: ClusterRole\nrules: [{apiGroups: [admissionregistration.k8s.io], resourceNames: [springtide], verbs: [get, patch, delete]}]":     true,
		"kind: APIService": true,
		"kind: CustomResourceDefinition\nspec: {conversion: {strategy: Webhook}}":                          true,
		"kind: CustomResourceDefinition\nspec: {conversion: {strategy: None}}":                             false,
		"kind: MutatingAdmissionPolicy\nspec: {failurePolicy: Ignore}":                                     false,
		"kind: MutatingAdmissionPolicy\nspec: {}":                                                          true,
		policy("", "failurePolicy: Fail,"):                                                                 true,
		policy("", ""):                                                                                     true,
		policy("", "failurePolicy: Ignore,"):                                                               false,
		policy("springtide.dev", "failurePolicy: Fail,"):                                                   false,
		"kind: ClusterRole\nrules: [{apiGroups: [admissionregistration.k8s.io], verbs: [get, create]}]":    true,
		"kind: ClusterRole\nrules: [{apiGroups: [admissionregistration.k8s.io], verbs: [get, list]}]":      false,
		"kind: ClusterRole\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]":                   true,
		"kind: ClusterRole\nrules: [{apiGroups: [''], resources: [pods], verbs: [get, list, watch, '*']}]": false,
	} {
		if by, err := blocks([]byte(doc)); (by != "") != refused || err != nil {
			t.Errorf("%q: %q (%v)", doc, by, err)
		}
	}
}
