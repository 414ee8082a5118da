package watch

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestImageSet(t *testing.T) {
	list := []corev1.ContainerImage{{Names: []string{"docker.io/library/nginx:latest",
		"docker.io/library/nginx@sha256:ab"}},
		{Names: []string{"docker.io/team/app:1"}}, {Names: []string{"reg.example:5000/cart:2"}}}
	few := newImageSet(list)
	for image, want := range map[string]bool{"nginx": true, "nginx:latest": true, "nginx:1.27": false,
		"docker.io/library/nginx@sha256:ab": true, "team/app:1": true, "team/app": false,
		"reg.example:5000/cart:2": true, "reg.example:5000/cart": false, "localhost/cart:2": false, "cart:2": false} {
		if present, known := few.has(image); present != want || !known {
			t.Errorf("%s: present %v, known %v; want %v", image, present, known, want)
		}
	}
	// A full list may leave an image out, and an empty one says nothing; what is listed is there all the same.
	for i := len(list); i < listedImages; i++ {
		list = append(list, corev1.ContainerImage{Names: []string{fmt.Sprintf("reg.example/%d:1", i)}})
	}
	full, none := newImageSet(list), newImageSet(nil)
	if present, known := full.has("nginx"); !present || !known {
		t.Error("a listed image is unknown")
	}
	for _, s := range []*imageSet{&full, &none} {
		if _, known := s.has("cart:2"); known {
			t.Error("an absence is known from a list that may leave images out")
		}
	}
}
