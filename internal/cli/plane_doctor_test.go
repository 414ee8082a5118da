//go:build plane

package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/deploy/base"
	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/examine"
	"github.com/springtide/springtide/internal/validate/offline"
)

// onTheServer brings namespace, rights and definitions of deploy to the API server, and waits until the kinds are served.
func onTheServer(t *testing.T) (kubeconfig string, dyn dynamic.Interface) {
	t.Helper()
	kubeconfig = os.Getenv("SPRINGTIDE_TEST_KUBECONFIG")
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	dyn = dynamic.NewForConfigOrDie(cfg)
	install := func(text []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range offline.Documents(text) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &u.Object); err != nil {
				t.Fatal(err)
			}
			if u.GetKind() == "" {
				continue // a comment between two documents
			}
			make1(t, dyn, u)
		}
	}
	install(os.ReadFile("../../deploy/base/namespace.yaml"))
	install(base.Files.ReadFile("rbac.yaml"))
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		install(crd.Files.ReadFile(f))
	}
	serves(t, cfg, v1alpha1.GroupVersion.String(), len(files))
	return kubeconfig, dyn
}

// make1 makes an object of a kind with a regular plural, unless it is there.
func make1(t *testing.T, dyn dynamic.Interface, u *unstructured.Unstructured) {
	t.Helper()
	resource := strings.ToLower(u.GetKind()) + "s"
	_, err := dyn.Resource(u.GroupVersionKind().GroupVersion().WithResource(resource)).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// serves waits until a group and version has some kinds.
func serves(t *testing.T, cfg *rest.Config, groupVersion string, n int) {
	t.Helper()
	served := discovery.NewDiscoveryClientForConfigOrDie(cfg)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := served.ServerResourcesForGroupVersion(groupVersion)
		if err == nil && kinds(list) >= n {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the kinds of %s are not served: %v", groupVersion, err)
		}
	}
}

// operate runs a command of operators.
func operate(args ...string) (string, error) {
	root := &cobra.Command{Use: "springtide", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(cluster.Commands(cluster.Connect, operatorVerbs...)...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// TestPlaneDoctorAsTheController: under the controller's own account, with the rights of deploy/base and no others, each check of the doctor that asks
// the API server can be made, and it finds all rights granted.
func TestPlaneDoctorAsTheController(t *testing.T) {
	own, _ := onTheServer(t)
	kubeconfig, err := clientcmd.LoadFromFile(own)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range kubeconfig.AuthInfos {
		a.Impersonate, a.ImpersonateGroups = "system:serviceaccount:springtide-system:springtide-controller", []string{"system:serviceaccounts", "system:authenticated"}
	}
	as := filepath.Join(t.TempDir(), "as-the-controller")
	if err := clientcmd.WriteToFile(*kubeconfig, as); err != nil {
		t.Fatal(err)
	}
	out, failed := operate("doctor", "--kubeconfig", as, "-o", "json") // the lab has no controller and no metrics, which is a problem of its own
	var found []examine.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v (%v): %s", err, failed, out)
	}
	healthy := map[string]bool{}
	for _, f := range found {
		if strings.Contains(f.Message, "forbidden") || strings.Contains(f.Message, "cannot ") {
			t.Errorf("%s: %s", f.Check, f.Message)
		}
		healthy[f.Check] = f.Severity == examine.Fine
	}
	for _, check := range []string{"API server", "definitions", "rights"} {
		if !healthy[check] {
			t.Errorf("%s is not well: %+v", check, found)
		}
	}
}

// kinds counts the kinds of a list, without their subresources.
func kinds(list *metav1.APIResourceList) (n int) {
	for i := range list.APIResources {
		if !strings.Contains(list.APIResources[i].Name, "/") {
			n++
		}
	}
	return n
}
