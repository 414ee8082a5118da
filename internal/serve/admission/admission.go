// Package admission is the controller's webhook: it refuses wrong objects of ours where they are written. In comes an AdmissionReview of the
// API server and the objects that the controller knows; out goes a refusal with the sentences of package validate. It judges what admission
// policies in CEL cannot: cron text, zones, PromQL, parents that are missing or form a circle, overlapping pools, contradicting windows.
//
// The webhook is optional and fails open: what it misses, the controller refuses in condition Accepted.
package admission

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate"
)

// mostBytes bounds a review: two objects, each at most as large as etcd takes one.
const mostBytes = 4 << 20

// Path is where the handler is served.
const Path = "/admission"

// Handler judges reviews.
type Handler struct {
	// Known returns the objects that the controller knows. The set is the caller's own.
	Known func() validate.Set
	// NamespaceLabel is the label that names the namespace in the metrics source.
	NamespaceLabel string
}

// ServeHTTP answers one AdmissionReview.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview of admission.k8s.io/v1", http.StatusBadRequest)
		return
	}
	response := h.judge(review.Request)
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review)
}

// judge refuses what is wrong with the new object and was not wrong with the old one, so that a wrong object can be corrected step by step.
func (h *Handler) judge(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	if r.SubResource != "" || r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return allowed
	}
	now, err := h.problems(r.Kind.Kind, r.Object.Raw)
	if err != nil {
		// The API server's own schema says it better.
		allowed.Warnings = []string{"springtide: " + err.Error()}
		return allowed
	}
	var before found
	if r.Operation == admissionv1.Update {
		if before, err = h.problems(r.Kind.Kind, r.OldObject.Raw); err != nil {
			before = found{}
		}
	}
	var fresh, stays []validate.Problem
	for _, p := range now.wrong {
		if slices.Contains(before.wrong, p) {
			stays = append(stays, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	for _, p := range slices.Concat(now.advice, stays) {
		allowed.Warnings = append(allowed.Warnings, p.String())
	}
	if len(fresh) == 0 {
		return allowed
	}
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: validate.Sentence(fresh)}}
}

// found is what is wrong with an object, and what is only unwise.
type found struct{ wrong, advice []validate.Problem }

func (h *Handler) problems(kind string, raw []byte) (found, error) {
	set := h.Known()
	var out found
	var key validate.Key
	read := func(into metav1.Object) error {
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("the %s could not be read: %w", kind, err)
		}
		key = validate.Key{Kind: kind, Namespace: into.GetNamespace(), Name: into.GetName()}
		return nil
	}
	switch kind {
	case "ElasticService":
		s := &v1alpha1.ElasticService{}
		if err := read(s); err != nil {
			return out, err
		}
		out.wrong = validate.ElasticService(s, h.NamespaceLabel)
		set.Services = put(set.Services, s)
	case "CapacityPool":
		p := &v1alpha1.CapacityPool{}
		if err := read(p); err != nil {
			return out, err
		}
		out.wrong = validate.CapacityPool(p)
		set.Pools = put(set.Pools, p)
	case "CapacityQuota":
		q := &v1alpha1.CapacityQuota{}
		if err := read(q); err != nil {
			return out, err
		}
		out.wrong = validate.CapacityQuota(q)
		set.Quotas = put(set.Quotas, q)
	case "ElasticJob":
		j := &v1alpha1.ElasticJob{}
		if err := read(j); err != nil {
			return out, err
		}
		out.wrong = validate.ElasticJob(j)
	case "FestivalPlan":
		f := &v1alpha1.FestivalPlan{}
		if err := read(f); err != nil {
			return out, err
		}
		out.wrong = validate.FestivalPlan(f)
	default:
		return out, nil
	}
	out.wrong = append(out.wrong, set.Problems()[key]...)
	out.advice = set.Advice()[key]
	slices.SortStableFunc(out.wrong, func(a, b validate.Problem) int { return strings.Compare(a.Field, b.Field) })
	return out, nil
}

// put puts an object in the place of the one with its name, or at the end.
func put[T metav1.Object](list []T, o T) []T {
	list = slices.Clone(list)
	if i := slices.IndexFunc(list, func(x T) bool { return x.GetName() == o.GetName() && x.GetNamespace() == o.GetNamespace() }); i >= 0 {
		list[i] = o
		return list
	}
	return append(list, o)
}
