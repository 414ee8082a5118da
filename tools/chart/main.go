// Command chart writes what the Helm charts are made of: the objects that kustomize builds from deploy/base and its components, as files that the
// charts' templates read and adjust by values. So the manifests are written once, by hand, in deploy/base. It runs in deploy/base.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/store/promql"
)

const notice = "# Generated from deploy/base by tools/chart: go generate ./deploy/base\n"

// part is a file of the chart: what a component adds to base.
type part struct {
	file, component string
	// kinds are the kinds that are taken; all when empty.
	kinds []string
}

// parts are the files of the chart springtide. Objects that a component changes are not among them: the templates change them by values, and
// deploy's tests hold both to the same result.
var parts = []part{
	{file: "base.yaml"},
	{file: "volume.yaml", component: "volume"},
	{file: "offline.yaml", component: "offline"},
	{file: "webhook.yaml", component: "webhook"},
	{file: "secure-metrics.yaml", component: "secure-metrics"},
	{file: "servicemonitor.yaml", component: "prometheus-operator", kinds: []string{"ServiceMonitor"}},
	{file: "prometheusrule.yaml", component: "prometheus-operator", kinds: []string{"PrometheusRule"}},
	{file: "dashboards.yaml", component: "grafana"},
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	if err := dashboards(); err != nil {
		return err
	}
	base, err := build("../base", "")
	if err != nil {
		return err
	}
	chart := filepath.Join("..", "chart", "springtide", "files")
	if err := os.RemoveAll(chart); err != nil {
		return err
	}
	for _, p := range parts {
		made := base
		if p.component != "" {
			if made, err = build("../base", p.component); err != nil {
				return err
			}
		}
		text, err := pick(made, base, p)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(chart, p.file), text); err != nil {
			return err
		}
	}
	rules, err := clusterRules(filepath.Join(chart, "prometheusrule.yaml"))
	if err != nil {
		return err
	}
	if err := write(filepath.Join(chart, "prometheusrule-clusters.yaml"), rules); err != nil {
		return err
	}
	uninstall, err := build("../uninstall", "")
	if err != nil {
		return err
	}
	text, err := pick(uninstall, nil, part{})
	if err != nil {
		return err
	}
	if err := write(filepath.Join(chart, "uninstall.yaml"), text); err != nil {
		return err
	}
	for _, name := range extras {
		if _, err := os.Stat(filepath.Join(name, "kustomization.yaml")); err != nil {
			continue
		}
		made, err := build("../base/"+name, "")
		if err != nil {
			return err
		}
		text, err := pick(made, nil, part{})
		if err != nil {
			return err
		}
		if err := write(filepath.Join(chart, name+".yaml"), text); err != nil {
			return err
		}
	}
	return definitions()
}

// clusterRules is the PrometheusRule with marks where a template puts what distinguishes clusters: templates cannot
// read PromQL.
func clusterRules(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	marks := promql.Cluster{Matchers: []string{`springtide_labels="0"`}, ReplicaLabels: []string{"springtide_replicas"}}
	if err := marks.RewriteRules(doc); err != nil {
		return nil, err
	}
	return yaml.Marshal(doc)
}

// extras are the components of Springtide next to the controller. Each is a kustomization that goes with base.
var extras = []string{"agent", "scheduler"}

// dashboards writes the ConfigMap of the component grafana.
func dashboards() error {
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no dashboards (%w)", err)
	}
	var b bytes.Buffer
	b.WriteString("# Generated from dashboards/ by tools/chart: go generate ./deploy/base\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: springtide-dashboards\n  namespace: springtide-system\n  labels:\n    grafana_dashboard: \"1\"\ndata:\n")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "  springtide-%s: |\n", filepath.Base(f))
		for line := range strings.Lines(string(text)) {
			b.WriteString("    " + line)
		}
	}
	return os.WriteFile("grafana/dashboards.yaml", b.Bytes(), 0o644)
}

// definitions copies the CRDs into their own chart: Helm neither upgrades nor removes those in a folder crds/.
func definitions() error {
	to := filepath.Join("..", "chart", "springtide-crds", "files")
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	made, err := build("../crd", "")
	if err != nil {
		return err
	}
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return err
		}
		if err := write(filepath.Join(to, r.GetName()+".yaml"), text); err != nil {
			return err
		}
	}
	return nil
}

// build runs kustomize on a folder below deploy, with a component of base.
func build(dir, component string) (resmap.ResMap, error) {
	at := dir
	if component != "" {
		overlay, err := os.MkdirTemp("..", ".chart-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(overlay)
		text := "resources: [" + dir + "]\ncomponents: [../base/" + component + "]\n"
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o644); err != nil {
			return nil, err
		}
		at = overlay
	}
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), at)
}

// pick is the text of the objects that are not in base, without the CRDs, which are a chart of their own, and the namespace of the controller,
// which is the release's.
func pick(made, base resmap.ResMap, p part) ([]byte, error) {
	var docs [][]byte
	for _, r := range made.Resources() {
		kind := r.GetKind()
		if kind == "CustomResourceDefinition" || kind == "Namespace" && r.GetName() == "springtide-system" || len(p.kinds) > 0 && !slices.Contains(p.kinds, kind) {
			continue
		}
		if base != nil && p.component != "" {
			if there := base.GetMatchingResourcesByCurrentId(r.CurId().Equals); len(there) > 0 {
				continue
			}
		}
		text, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		docs = append(docs, text)
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("nothing for %+v", p)
	}
	return bytes.Join(docs, []byte("---\n")), nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(notice), text...), 0o644)
}
