// Package review asks the API server who sent a request and what that caller may do. In comes a bearer token; out goes the API server's answer.
// It guards what the processes serve by TLS (read API, metrics).
package review

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Reviewer asks the API server who a caller is and what it may do.
type Reviewer struct{ Client kubernetes.Interface }

// ErrNoUser says that a request comes from no user that the API server knows.
var ErrNoUser = errors.New("the request carries no bearer token that the API server knows: log in to the cluster with a token (kubeconfig user, exec plugin or --token)")

// User finds who sent a request, by the bearer token that it carries.
func (r *Reviewer) User(ctx context.Context, q *http.Request) (*authenticationv1.UserInfo, error) {
	for name := range q.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return nil, fmt.Errorf("%w: impersonation (--as) is the API server's own and is not taken here", ErrNoUser)
		}
	}
	token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return nil, ErrNoUser
	}
	review, err := r.Client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask the API server who this is: %w", err)
	}
	if !review.Status.Authenticated {
		return nil, ErrNoUser
	}
	return &review.Status.User, nil
}

// Allowed reports whether a user may do something to a resource.
func (r *Reviewer) Allowed(ctx context.Context, user *authenticationv1.UserInfo, what *authorizationv1.ResourceAttributes) (bool, error) {
	return r.review(ctx, user, &authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: what})
}

// MayGet reports whether a user may get a path that is no resource, such as /metrics.
func (r *Reviewer) MayGet(ctx context.Context, user *authenticationv1.UserInfo, path string) (bool, error) {
	return r.review(ctx, user, &authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: path}})
}

func (r *Reviewer) review(ctx context.Context, user *authenticationv1.UserInfo, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	spec.User, spec.UID, spec.Groups, spec.Extra = user.Username, user.UID, user.Groups, make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		spec.Extra[k] = authorizationv1.ExtraValue(v)
	}
	review, err := r.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: *spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server what %s may do: %w", user.Username, err)
	}
	return review.Status.Allowed, nil
}
