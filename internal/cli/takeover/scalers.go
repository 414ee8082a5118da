// Package takeover knows the autoscalers of others that Springtide takes over, and gives them back by the marks they carry.
package takeover

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/cli/cluster"
	"github.com/springtide/springtide/internal/cli/usage"
)

// Resources are the kinds of other operators.
var Resources = map[string]schema.GroupVersionResource{
	ScaledObject: {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
	CronHPA:      {Group: "autoscaling.alibabacloud.com", Version: "v1beta1", Resource: "cronhorizontalpodautoscalers"},
}

// Scaler reads a scaler of another operator.
func Scaler(ctx context.Context, c *cluster.Clients, kind string, name fleet.Name) (*unstructured.Unstructured, error) {
	u, err := c.Dyn.Resource(Resources[kind]).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, usage.Found("there is no %s %s", kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return u, nil
}

// The scalers that adopt and release know.
const (
	HPA          = "hpa"
	ScaledObject = "scaledobject"
	CronHPA      = "cronhpa"
)
