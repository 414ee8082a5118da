package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/fleet"
)

// scalerResources are the kinds of other operators.
var scalerResources = map[string]schema.GroupVersionResource{
	scalerScaledObject: {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
	scalerCronHPA:      {Group: "autoscaling.alibabacloud.com", Version: "v1beta1", Resource: "cronhorizontalpodautoscalers"},
}

func (c *clients) scaler(ctx context.Context, kind string, name fleet.Name) (*unstructured.Unstructured, error) {
	u, err := c.dyn.Resource(scalerResources[kind]).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errFound("there is no %s %s", kind, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return u, nil
}
