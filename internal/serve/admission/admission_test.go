package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate"
)

func service(name, target string, change func(*v1alpha1.ElasticService)) *v1alpha1.ElasticService {
	s := &v1alpha1.ElasticService{}
	s.Namespace, s.Name = "shop", name
	s.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	if change != nil {
		change(s)
	}
	return s
}

func pool(name, label string) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{}
	p.Name, p.Spec.NodeSelector.MatchLabels = name, map[string]string{"pool": label}
	return p
}

func quota(name, parent string) *v1alpha1.CapacityQuota {
	q := &v1alpha1.CapacityQuota{}
	q.Name, q.Spec.Parent = name, parent
	return q
}

func TestHandler(t *testing.T) {
	known := func() validate.Set {
		return validate.Set{Services: []*v1alpha1.ElasticService{service("cart", "cart", nil)}, Pools: []*v1alpha1.CapacityPool{pool("web", "web")},
			Quotas: []*v1alpha1.CapacityQuota{quota("a", "b"), quota("b", "")}}
	}
	h := &Handler{Known: known, NamespaceLabel: "namespace"}
	query := func(q string) func(*v1alpha1.ElasticService) {
		return func(s *v1alpha1.ElasticService) { s.Spec.Metrics = []v1alpha1.Metric{{Type: "Query", Query: q}} }
	}
	zone := func(s *v1alpha1.ElasticService) {
		s.Spec.Windows = []v1alpha1.Window{{Name: "w", Start: "0 0 30 2 *", TimeZone: "Asia/Beijing"}}
	}
	for _, c := range []struct {
		name, kind string
		now, old   any
		refused    []string
		warned     string
	}{
		{"what is well", "ElasticService", service("till", "till", nil), nil, nil, ""},
		{"a second owner", "ElasticService", service("copy", "cart", nil), nil, []string{"ElasticService shop/cart already"}, ""},
		{"itself", "ElasticService", service("cart", "cart", nil), service("cart", "cart", nil), nil, ""},
		{"a zone and a date", "ElasticService", service("till", "till", zone), nil, []string{"never starts", `zone "Asia/Beijing"`}, ""},
		{"another tenant's series", "ElasticService", service("till", "till", query(`sum(up{namespace="bank"})`)), nil, []string{"spec.metrics[0].query"}, ""},
		{"what was wrong before", "ElasticService", service("till", "till", zone), service("till", "till", zone), nil, "never starts"},
		{"one thing mended, one made wrong", "ElasticService", service("till", "till", query("sum(")), service("till", "till", zone), []string{"spec.metrics[0].query"}, ""},
		{"a pool with another's machines", "CapacityPool", pool("twin", "web"), nil, []string{"pool web picks the same machines"}, ""},
		{"a missing parent", "CapacityQuota", quota("c", "gone"), nil, []string{"there is no CapacityQuota gone"}, ""},
		{"a circle of three", "CapacityQuota", quota("b", "a"), quota("b", ""), []string{"(b -> a -> b)"}, ""},
		{"another kind", "Loan", &v1alpha1.Loan{}, nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &admissionv1.AdmissionRequest{UID: "u", Kind: metav1.GroupVersionKind{Kind: c.kind}, Operation: admissionv1.Create, Object: raw(t, c.now)}
			if c.old != nil {
				r.Operation, r.OldObject = admissionv1.Update, raw(t, c.old)
			}
			got := ask(t, h, r)
			if got.UID != "u" || got.Allowed != (c.refused == nil) {
				t.Fatalf("%+v", got)
			}
			for _, want := range c.refused {
				if !strings.Contains(got.Result.Message, want) {
					t.Errorf("refused by %q, want %q", got.Result.Message, want)
				}
			}
			if warnings := strings.Join(got.Warnings, "\n"); !strings.Contains(warnings, c.warned) || c.warned == "" && warnings != "" {
				t.Errorf("warned by %q, want %q", warnings, c.warned)
			}
		})
	}
}

func raw(t *testing.T, v any) runtime.RawExtension {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: b}
}

func ask(t *testing.T, h http.Handler, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: r})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, bytes.NewReader(body)))
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Response == nil {
		t.Fatalf("%v in %d %s", err, w.Code, w.Body)
	}
	return out.Response
}

func TestHandlerRefusesWhatIsNoReview(t *testing.T) {
	w := httptest.NewRecorder()
	(&Handler{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader("{}")))
	if w.Code != http.StatusBadRequest {
		t.Errorf("answered %d", w.Code)
	}
}
