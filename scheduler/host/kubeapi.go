package host

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/springtide/springtide/scheduler/host/bind"
)

// errNotOurs refuses a binding or an eviction that would be sent after another instance may have taken the partition over.
var errNotOurs = errors.New("lease of the partition expired; binding not sent")

// kubeAPI binds pods at the API server.
type kubeAPI struct {
	client kubernetes.Interface
	// mayWrite says whether the lease of the partition still holds.
	mayWrite func() bool
	timeout  time.Duration
}

var _ bind.API = (*kubeAPI)(nil)

// Bind writes the binding: one request, which names the UID of the pod, so that a pod made again under the name is not bound by it. The API server
// copies the annotations to the pod.
func (a *kubeAPI) Bind(ctx context.Context, r bind.Request) error {
	if !a.mayWrite() {
		return &bind.RefusedError{Err: errNotOurs}
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.UID), Annotations: r.Annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: r.Node},
	}
	// The timeout goes with the request, so that the API server does not carry it out later either.
	err := a.client.CoreV1().RESTClient().Post().Namespace(r.Namespace).Resource("pods").Name(r.Name).SubResource("binding").
		Timeout(a.timeout).Body(binding).Do(ctx).Error()
	return answer(err)
}

// answer sorts what the API server said into definite and unknown. 429 and 4xx answers come before anything is stored.
func answer(err error) error {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return bind.ErrGone
	case errors.As(err, &status):
		if code := status.Status().Code; code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout {
			return &bind.RefusedError{Err: err}
		}
	}
	return err
}

// NodeOf reads the pod from storage, past the API server's watch cache.
func (a *kubeAPI) NodeOf(ctx context.Context, r bind.Request) (string, error) {
	p, err := a.client.CoreV1().Pods(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && string(p.UID) != r.UID:
		return "", bind.ErrGone
	case err != nil:
		return "", err
	}
	return p.Spec.NodeName, nil
}
