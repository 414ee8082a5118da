package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/cli/cell"
)

// taintPlugin is the one of the descheduler that evicts pods for taints of their nodes.
const taintPlugin = "RemovePodsViolatingNodeTaints"

// checkNeighbours finds other controllers that act on marks of ours: a descheduler whose policy evicts pods for the taint of a machine that is lent, or being emptied.
func checkNeighbours(ctx context.Context, d *doctor) error {
	maps, err := d.Clients.Core.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=descheduler"})
	if err != nil {
		return unlessForbidden(d, err)
	}
	all := maps.Items
	for _, name := range []string{"descheduler", "descheduler-policy-configmap"} { // as its manifests name it, without labels
		m, err := d.Clients.Core.CoreV1().ConfigMaps("kube-system").Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return unlessForbidden(d, err)
		case !slices.ContainsFunc(all, func(o corev1.ConfigMap) bool { return o.UID == m.UID }):
			all = append(all, *m)
		}
	}
	policies, evicts := 0, []string(nil)
	for i := range all {
		m := &all[i]
		for _, key := range sortedNames(m.Data) {
			is, acts, err := judgeDescheduler(m.Data[key])
			if err != nil {
				d.Advise("correct it: what it evicts is not known", "%s of ConfigMap %s/%s is no policy of a descheduler: %v", key, m.Namespace, m.Name, err)
			}
			if is {
				policies++
			}
			if acts {
				evicts = append(evicts, fmt.Sprintf("%s of ConfigMap %s/%s", key, m.Namespace, m.Name))
			}
		}
	}
	switch {
	case len(evicts) > 0:
		d.Advise(fmt.Sprintf("put %s and %s into the plugin's excludedTaints (docs/neighbours.md has the profile)", v1alpha1.TaintHolder, v1alpha1.TaintFenced),
			"the descheduler's plugin %s evicts online pods of machines that are being emptied: %s", taintPlugin, cell.First(evicts, cell.FewNames))
	case policies > 0:
		d.OK("the descheduler's policy leaves machines of loans alone")
	default:
		d.OK("no policy of a descheduler was found")
	}
	return nil
}

// unlessForbidden takes an object without the right to read it for absent, and says so.
func unlessForbidden(d *doctor, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("look for a descheduler: %w", err)
	}
	d.OK("whether a descheduler runs is not known: this account has no right to read ConfigMaps of all namespaces")
	return nil
}

// judgeDescheduler reads a DeschedulerPolicy of any version: whether the text is one, and whether it evicts pods for our taints.
func judgeDescheduler(text string) (is, acts bool, err error) {
	if !strings.Contains(text, "DeschedulerPolicy") {
		return false, false, nil
	}
	type taints struct {
		Excluded []string `json:"excludedTaints"`
		Included []string `json:"includedTaints"`
	}
	var p struct {
		Kind     string `json:"kind"`
		Profiles []struct {
			PluginConfig []struct {
				Name string `json:"name"`
				Args taints `json:"args"`
			} `json:"pluginConfig"`
			Plugins map[string]struct {
				Enabled []string `json:"enabled"`
			} `json:"plugins"`
		} `json:"profiles"`
		Strategies map[string]struct {
			Enabled bool   `json:"enabled"`
			Params  taints `json:"params"`
		} `json:"strategies"`
	}
	if err := yaml.Unmarshal([]byte(text), &p); err != nil {
		return true, false, err
	}
	// An entry is the key of a taint, or key=value where it has one.
	ours := func(t taints) bool {
		for _, taint := range [][]string{{v1alpha1.TaintHolder, v1alpha1.TaintHolder + "=" + v1alpha1.TaintHolderOffline}, {v1alpha1.TaintFenced}} {
			names := func(list []string) bool {
				return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(taint, s) })
			}
			if !names(t.Excluded) && (len(t.Included) == 0 || names(t.Included)) {
				return true
			}
		}
		return false
	}
	if s := p.Strategies[taintPlugin]; s.Enabled && ours(s.Params) {
		return true, true, nil
	}
	for _, f := range p.Profiles {
		on, with := false, taints{}
		for _, point := range f.Plugins {
			on = on || slices.Contains(point.Enabled, taintPlugin)
		}
		for i := range f.PluginConfig {
			if f.PluginConfig[i].Name == taintPlugin {
				with = f.PluginConfig[i].Args
			}
		}
		if on && ours(with) {
			return true, true, nil
		}
	}
	return true, false, nil
}
