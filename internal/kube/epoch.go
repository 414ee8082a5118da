package kube

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/springtide/springtide/api/v1alpha1"
)

// believable reports whether a leader can have written with an epoch when leaderships were counted up to count. Each takeover adds one to the
// count, so that a larger number than this was written by no leader of ours: it is a typing error, a forgery or the number of another cluster.
func believable(epoch, count int64) bool { return epoch >= 0 && epoch <= count+v1alpha1.EpochSpan }

// leaderStamp is the mark of a leader on an object of others: its epoch, and the Lease by which it led. Epochs of two Leases do not compare: a
// Lease that was deleted counts from the start again.
type leaderStamp struct {
	epoch int64
	lease types.UID
}

// stampText is a stamp as the annotation carries it. The UID of the object is part of it: manifests are copied and restored with their
// annotations, and the number on a copy says nothing of the copy.
func stampText(epoch int64, lease, object types.UID) string {
	return fmt.Sprintf("%d/%s/%s", epoch, lease, object)
}

// stampOn is the stamp that an object of others carries; zero where it has none, or one that was written on another object.
func stampOn(o metav1.Object) leaderStamp {
	parts := strings.Split(o.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch], "/")
	if len(parts) != 3 || parts[2] == "" || parts[2] != string(o.GetUID()) {
		return leaderStamp{}
	}
	epoch, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return leaderStamp{}
	}
	return leaderStamp{epoch, types.UID(parts[1])}
}

// fencing is the epoch of a stamp as preconditions compare it with that of this leader; 0 where they do not compare. A number that no leader can
// have written does not fence: it is written over.
func (l leadership) fencing(s leaderStamp) int64 {
	if s.lease == "" || s.lease != l.lease || !believable(s.epoch, l.epoch) {
		return 0
	}
	return s.epoch
}

// leadership is what this process leads by; zero while it does not.
type leadership struct {
	epoch int64
	lease types.UID
}

// term is what this process leads by as time goes on. All rooms read it; the election alone writes it.
type term struct {
	mu sync.Mutex // guards what follows
	// held is this controller's leadership, and since when; zero while it has none.
	held  leadership
	since time.Time
	// stamped are the targets that carry the stamp of this leadership.
	stamped map[types.UID]bool
}

// leads is the present leadership.
func (t *term) leads() leadership {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// now is the present leadership, since when it is, and the targets that carry its stamp.
func (t *term) now() (held leadership, since time.Time, stamped map[types.UID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.since, maps.Clone(t.stamped)
}

// lead records what this process leads by from a time on; the zero leadership ends it.
func (t *term) lead(l leadership, from time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.stamped, t.since = l, map[types.UID]bool{}, time.Time{}
	if l.epoch != 0 {
		t.since = from.UTC()
	}
}

// stamp records that a target carries the stamp of this leadership.
func (t *term) stamp(target types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stamped[target] = true
}
