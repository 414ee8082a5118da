package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// thirdParty lists what each room may import from outside the module and the standard library; a prefix allows what lies below it. Tests
// and what builds (tools) are free.
var thirdParty = map[string][]string{
	"portrait":          {"gonum.org/v1/gonum", "k8s.io/autoscaler/vertical-pod-autoscaler"},
	"portrait/model":    {"gonum.org/v1/gonum"},
	"forecast":          {"gonum.org/v1/gonum"},
	"forecast/calendar": {"github.com/rickar/cal/v2"},
	"hpa":               {"gonum.org/v1/gonum", "github.com/robfig/cron/v3"},
	"internal/loop":     {"github.com/prometheus/client_golang/prometheus"},

	"store": {
		"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3", "modernc.org/sqlite",
		"github.com/prometheus/client_golang", "github.com/prometheus/common", "github.com/prometheus/prometheus/model/labels", "github.com/prometheus/prometheus/promql/parser",
	},
	"internal/eviction":   {"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"},
	"internal/kube":       {"github.com/prometheus/client_golang", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/component-helpers/resource", "k8s.io/component-helpers/scheduling"},
	"internal/serve":      {"github.com/prometheus/client_golang/prometheus", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go/kubernetes"},
	"internal/validate":   {"go.yaml.in/yaml/v3", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver/pkg/apis/cel", "sigs.k8s.io/yaml"},
	"internal/pgtest":     {"github.com/jackc/pgx/v5"},
	"internal/scripttest": {"github.com/google/go-cmp/cmp", "github.com/rogpeppe/go-internal/txtar"},
	"internal/csvseries":  {"go.yaml.in/yaml/v3"},
	"api/v1alpha1":        {"k8s.io/apimachinery"},
	"api/catalog":         {"k8s.io/apimachinery"},
	"api/config":          {"go.yaml.in/yaml/v3", "github.com/prometheus/common"},

	"internal/run": {"github.com/prometheus/client_golang", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd", "k8s.io/klog/v2"},

	"sim":   {"go.yaml.in/yaml/v3"},
	"tools": {"github.com/prometheus/client_golang/prometheus", "go.yaml.in/yaml/v3", "golang.org/x/crypto/x509roots", "sigs.k8s.io/kustomize", "sigs.k8s.io/yaml"},
	"lab": {
		"charm.land/lipgloss/v2", "github.com/prometheus/client_golang/prometheus", "github.com/prometheus/common", "github.com/prometheus/prometheus", "golang.org/x/term",
		"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/component-helpers", "k8s.io/klog/v2", "sigs.k8s.io/kwok/kustomize", "sigs.k8s.io/yaml",
	},

	"lab/judge/watch": {"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/component-helpers/resource"},

	"agent/host": {
		"github.com/containerd/nri/pkg/api", "github.com/containerd/nri/pkg/stub", "github.com/prometheus/client_golang/prometheus",
		"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go",
		"google.golang.org/grpc", "k8s.io/cri-api",
	},

	"cmd/springtide-agent": {"github.com/prometheus/client_golang", "github.com/spf13/cobra", "k8s.io/client-go", "k8s.io/klog/v2"},

	"scheduler/host": {"github.com/prometheus/client_golang/prometheus", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"},
	"scheduler/host/upstream": {
		"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiserver/pkg/util/feature", "k8s.io/component-base/version", "k8s.io/component-helpers/nodedeclaredfeatures", "k8s.io/component-helpers/resource", "k8s.io/client-go", "k8s.io/dynamic-resource-allocation", "k8s.io/klog/v2",
		"k8s.io/kube-scheduler/framework", "k8s.io/kubernetes/pkg/scheduler",
	},
	"scheduler/host/command": {"github.com/prometheus/client_golang/prometheus", "github.com/spf13/cobra", "k8s.io/client-go", "k8s.io/klog/v2"},

	"bench/scheduling": {"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/yaml"},

	"internal/cli": {
		"github.com/prometheus/client_golang", "github.com/prometheus/common", "github.com/spf13/cobra",
		"github.com/spf13/pflag", "golang.org/x/term",
		"k8s.io/api", "k8s.io/apiextensions-apiserver/pkg/apis", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/component-helpers/scheduling", "sigs.k8s.io/yaml",
	},
	"cmd/springtide-lab": {"github.com/spf13/cobra", "go.etcd.io/etcd/server/v3/embed", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go",
		"k8s.io/component-base", "k8s.io/controller-manager", "k8s.io/klog/v2", "k8s.io/kubernetes"},
}

// refuseImport judges an import of a file that is no test; empty when it is fine.
func refuseImport(name, imp string) string {
	pkg := path.Dir(name)
	level, room, ok := levelOf(pkg)
	if !ok {
		return "the package has no level: add it to the table and to docs/architecture.md"
	}
	if own, found := strings.CutPrefix(imp, module); found {
		return refuseOwn(pkg, room, own)
	}
	first, _, _ := strings.Cut(imp, "/")
	if isPure(room) {
		if why, bad := forbidden[imp]; bad {
			return why
		}
		if why, bad := forbidden[first]; bad { // net/netip, os/exec and whatever else lies below
			return why
		}
	}
	if !strings.Contains(first, ".") {
		return ""
	}
	for prefix, only := range oneFile {
		if under(imp, prefix) && name != only {
			return "only " + only + " may"
		}
	}
	if !slices.ContainsFunc(thirdParty[room], func(p string) bool { return under(imp, p) }) {
		return fmt.Sprintf("room %s (level %d) is not allowed it: see thirdParty", room, level)
	}
	return ""
}

// refuseOwn judges an import of a package of ours.
func refuseOwn(pkg, room, own string) string {
	level := levels[room]
	to, toRoom, ok := levelOf(own)
	switch {
	case !ok:
		return "it has no level"
	case under(pkg, "lab/judge") && !under(own, "lab/judge"):
		return "what judges shares no code with what is judged"
	case toRoom != room && to >= level && !slices.Contains(sameLevel[room], toRoom):
		return fmt.Sprintf("level %d imports level %d: imports go down", level, to)
	case toRoom == room && refuseInside(room, pkg, own) != "":
		return refuseInside(room, pkg, own)
	case toRoom == "lab" && !under(pkg, "lab") && !under(pkg, "cmd/springtide-lab") && room != "e2e":
		return "the product speaks to the lab through its APIs alone"
	case under(own, "api") && level < 6:
		return "below level 6 facts are of package fleet"
	}
	return ""
}

// under says whether a path is the prefix or lies below it.
func under(p, prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") }
