package watch

import (
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/kube/object"
)

// listedImages is how many images a kubelet reports by default (nodeStatusMaxImages), the largest ones: a list that long may leave some out.
const listedImages = 50

// imageSet are the images of a machine by the hashes of their names: names are long, and machines many.
type imageSet struct {
	names []uint64 // sorted
	// whole: the list is not empty and leaves none out, so that what it lacks is not there.
	whole bool
}

func newImageSet(list []corev1.ContainerImage) imageSet {
	s := imageSet{whole: len(list) > 0 && len(list) < listedImages}
	for i := range list {
		for _, name := range list[i].Names {
			s.names = append(s.names, imageHash(name))
		}
	}
	slices.Sort(s.names)
	return s
}

// has says whether the machine has an image, where that is known.
func (s *imageSet) has(image string) (present, known bool) {
	for _, name := range imageNames(image) {
		if _, ok := slices.BinarySearch(s.names, imageHash(name)); ok {
			return true, true
		}
	}
	return false, s.whole
}

// imageNames are the names under which a container runtime lists what a pod calls by a short one.
func imageNames(image string) []string {
	if !strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") && !strings.Contains(image, "@") {
		image += ":latest"
	}
	first, _, path := strings.Cut(image, "/")
	switch {
	case !path:
		return []string{image, "docker.io/library/" + image}
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		return []string{image, "docker.io/" + image}
	}
	return []string{image}
}

func imageHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// imageBook remembers of each pod whether its machine had its images when the pod was bound. A pod that was bound before this process saw
// it is not in the book: its own pull would be taken for an image that was there.
type imageBook struct {
	mu      sync.Mutex
	present map[types.UID]bool
}

// note follows a pod from one state to the next; facts are nil before it came and after it went.
func (b *imageBook) note(before, after *PodFacts, nodes *object.Mirror[*NodeFacts]) {
	switch {
	case after == nil && before != nil:
		b.mu.Lock()
		delete(b.present, before.UID)
		b.mu.Unlock()
	case before == nil || after == nil || before.Pod.NodeName != "" || after.Pod.NodeName == "":
	default:
		node, ok := nodes.Get("", after.Pod.NodeName)
		if !ok {
			return
		}
		all := true
		for _, image := range after.images {
			present, known := node.images.has(image)
			if !known {
				return
			}
			all = all && present
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.present == nil {
			b.present = map[types.UID]bool{}
		}
		b.present[after.UID] = all
	}
}

// Of returns what is known of one pod.
func (b *imageBook) Of(f *PodFacts) fleet.Known[bool] {
	b.mu.Lock()
	defer b.mu.Unlock()
	present, ok := b.present[f.UID]
	return fleet.Known[bool]{Value: present, OK: ok}
}

// imagesOf are the images that a pod needs before it can be ready.
func imagesOf(spec *corev1.PodSpec) []string {
	var out []string
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if !slices.Contains(out, list[i].Image) {
				out = append(out, list[i].Image)
			}
		}
	}
	return out
}
