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
type image struct {
	on []imageOn
	// sizes is how many of them have it in a size.
	sizes map[uint32]int32
}

type imageOn struct {
	node int32
	kib  uint32
}

func (g *image) find(i int32) (int, bool) {
	return slices.BinarySearchFunc(g.on, i, func(x imageOn, i int32) int { return cmp.Compare(x.node, i) })
}

// count notes that one machine more, or less, has the image in a size.
func (g *image) count(kib uint32, times int32) {
	if g.sizes[kib] += times; g.sizes[kib] == 0 {
		delete(g.sizes, kib)
	}
}

// imageNumber interns the name of an image.
func (t *Table) imageNumber(name string) int32 {
	k, fresh := intern(t.imageOf, name)
	if fresh {
		t.images = append(t.images, image{sizes: map[uint32]int32{}})
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
		g.count(on.kib, 1)
		if at, ok := g.find(i); ok {
			g.count(g.on[at].kib, -1)
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
			g.count(g.on[at].kib, -1)
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
			sum += t.imageAmount(k, g.on[at].kib)
		}
	}
	return imagesScore(c, sum)
}

func imagesScore(c *class, sum int64) int64 {
	all := mostImage * max(c.shape.Needs.Sources, 1)
	return whole * (min(max(sum, leastImages), all) - leastImages) / (all - leastImages)
}

// imageAmount is what an image counts for on a machine that has it.
func (t *Table) imageAmount(k int32, kib uint32) int64 {
	return t.imageStep(k) * (int64(kib) << 10) / imageSteps
}

// imagesEverywhere is what those images of a class count for that each machine has, in one size: of all machines alike.
func (t *Table) imagesEverywhere(c *class) (sum int64) {
	for _, k := range c.images {
		if t.everywhere(k) {
			sum += t.imageAmount(k, t.images[k].on[0].kib)
		}
	}
	return sum
}

func (t *Table) everywhere(k int32) bool {
	g := &t.images[k]
	return len(g.on) == t.known && t.known > 0 && len(g.sizes) == 1
}

// addImages adds to the scores of the machines that have some of its images what they have beyond those that all have.
func (t *Table) addImages(c *class, scores []int32) {
	w, all := t.weights.of(c.side).Images, t.imagesEverywhere(c)
	t.sums = append(t.sums, make([]int64, max(len(scores)-len(t.sums), 0))...)
	for _, k := range c.images {
		if step := t.imageStep(k); step > 0 && !t.everywhere(k) {
			for _, on := range t.images[k].on {
				t.sums[on.node] += step * (int64(on.kib) << 10) / imageSteps
			}
		}
	}
	base := imagesScore(c, all)
	for _, k := range c.images {
		if t.everywhere(k) {
			continue
		}
		for _, on := range t.images[k].on {
			if sum := t.sums[on.node]; sum > 0 && fits(scores[on.node]) {
				scores[on.node] += int32(w * (imagesScore(c, all+sum) - base))
			}
			t.sums[on.node] = 0
		}
	}
}
