package place

import (
	"cmp"
	"slices"

	"github.com/springtide/springtide/fleet"
)

// A machine that has a pod's images starts it sooner. As upstream's ImageLocality has it, an image counts by its size and by the part of the machines
// that have it: one that few have draws no pods to these few. The part is counted in steps, so that a rollout does not change the score of all
// machines with each of them that pulls the image.

// Image is an image that a machine has, under one of its names.
type Image struct {
	Name string
	Size fleet.Bytes
}

// imageSteps is how finely the part of the machines is resolved: 64 steps are at most 64 new indexes of a class in the rollout of its image.
const imageSteps = 64

// Below the first bound the images of a pod count for nothing; the second one is the most for each of its containers.
const (
	leastImages = 23 << 20
	mostImage   = 1000 << 20
)

// image is one name, with the machines that have it in order.
type image struct{ on []imageOn }

type imageOn struct {
	node int32
	kib  uint32
}

func (g *image) find(i int32) (int, bool) {
	return slices.BinarySearchFunc(g.on, i, func(x imageOn, i int32) int { return cmp.Compare(x.node, i) })
}

// imageNumber interns the name of an image.
func (t *Table) imageNumber(name string) int32 {
	k, fresh := intern(t.imageOf, name)
	if fresh {
		t.images = append(t.images, image{})
	}
	return k
}

// setImages notes what images a machine has.
func (t *Table) setImages(i int32, have []Image) {
	n := &t.nodes[i]
	next := make([]int32, 0, len(have))
	for _, x := range have {
		k := t.imageNumber(x.Name)
		next = append(next, k)
		on := imageOn{i, uint32(min(max(x.Size, 0)>>10, 1<<31))}
		g := &t.images[k]
		if at, ok := g.find(i); ok {
			g.on[at] = on
		} else {
			g.on = slices.Insert(g.on, at, on)
		}
	}
	for _, k := range n.images {
		if slices.Contains(next, k) {
			continue
		}
		g := &t.images[k]
		if at, ok := g.find(i); ok {
			g.on = slices.Delete(g.on, at, at+1)
		}
	}
	n.images = next
}

// imageStep is the part of the machines that have an image, in steps.
func (t *Table) imageStep(k int32) int64 {
	return (2*imageSteps*int64(len(t.images[k].on)) + int64(t.known)) / (2 * max(int64(t.known), 1))
}

// sameSteps reports whether the images of a class are as widely spread as they were, and notes how widely they are now.
func (t *Table) sameSteps(c *class, steps *[]int64) bool {
	same := len(*steps) == len(c.images)
	*steps = slices.Grow((*steps)[:0], len(c.images))[:len(c.images)]
	for x, k := range c.images {
		s := t.imageStep(k)
		same = same && (*steps)[x] == s
		(*steps)[x] = s
	}
	return same
}

// imageShare is how much of what a pod starts from is on a machine, in thousandths.
func (t *Table) imageShare(c *class, i int32) int64 {
	var sum int64
	for _, k := range c.images {
		g := &t.images[k]
		if at, ok := g.find(i); ok {
			sum += t.imageStep(k) * (int64(g.on[at].kib) << 10) / imageSteps
		}
	}
	return imagesScore(c, sum)
}

func imagesScore(c *class, sum int64) int64 {
	all := mostImage * max(c.shape.Needs.Sources, 1)
	return whole * (min(max(sum, leastImages), all) - leastImages) / (all - leastImages)
}

// addImages adds the term of a class to the scores of the machines that have some of its images.
func (t *Table) addImages(c *class, scores []int32) {
	w := t.weights.of(c.side).Images
	if w == 0 {
		return
	}
	t.sums = slices.Grow(t.sums[:0], len(scores))[:len(scores)]
	clear(t.sums)
	for _, k := range c.images {
		step := t.imageStep(k)
		if step == 0 {
			continue
		}
		for _, on := range t.images[k].on {
			t.sums[on.node] += step * (int64(on.kib) << 10) / imageSteps
		}
	}
	for i, sum := range t.sums {
		if sum > leastImages && fits(scores[i]) {
			scores[i] += int32(w * imagesScore(c, sum))
		}
	}
}
