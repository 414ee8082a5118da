package leadership

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

// Believable reports whether a leader can have written with an epoch when leaderships were counted up to count. Each
// takeover adds one to the count, so that a larger number than this was written by no leader of ours: it is a typing
// error, a forgery or the number of another cluster.
func Believable(epoch, count int64) bool { return epoch >= 0 && epoch <= count+v1alpha1.EpochSpan }

// Stamp is the mark of a leader on an object of others: its epoch, and the Lease by which it led. Epochs of two Leases
// do not compare: a Lease that was deleted counts from the start again.
type Stamp struct {
	Epoch int64
	Lease types.UID
}

// StampText is a stamp as the annotation carries it. The UID of the object is part of it: manifests are copied and
// restored with their annotations, and the number on a copy says nothing of the copy.
func StampText(epoch int64, lease, object types.UID) string {
	return fmt.Sprintf("%d/%s/%s", epoch, lease, object)
}

// StampOn is the stamp that an object of others carries; zero where it has none, or one that was written on another
// object.
func StampOn(o metav1.Object) Stamp {
	parts := strings.Split(o.GetAnnotations()[v1alpha1.AnnotationLeaderEpoch], "/")
	if len(parts) != 3 || parts[2] == "" || parts[2] != string(o.GetUID()) {
		return Stamp{}
	}
	epoch, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return Stamp{}
	}
	return Stamp{epoch, types.UID(parts[1])}
}

// Fencing is the epoch of a stamp as preconditions compare it with that of this leader; 0 where they do not compare. A
// number that no leader can have written does not fence: it is written over.
func (l Held) Fencing(s Stamp) int64 {
	if s.Lease == "" || s.Lease != l.Lease || !Believable(s.Epoch, l.Epoch) {
		return 0
	}
	return s.Epoch
}

// Held is what this process leads by; zero while it does not.
type Held struct {
	Epoch int64
	Lease types.UID
}

// Term is what this process leads by as time goes on. All rooms read it; the election alone writes it.
type Term struct {
	mu sync.Mutex // guards what follows
	// held is this controller's leadership, and since when; zero while it has none.
	held  Held
	since time.Time
	// stamped are the targets that carry the stamp of this leadership.
	stamped map[types.UID]bool
}

// Leads is the present leadership.
func (t *Term) Leads() Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// Present is the present leadership, since when it is, and the targets that carry its stamp.
func (t *Term) Present() (held Held, since time.Time, stamped map[types.UID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.since, maps.Clone(t.stamped)
}

// Take records what this process leads by from a time on; the zero leadership ends it.
func (t *Term) Take(l Held, from time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.stamped, t.since = l, map[types.UID]bool{}, time.Time{}
	if l.Epoch != 0 {
		t.since = from.UTC()
	}
}

// NoteStamp records that a target carries the stamp of this leadership.
func (t *Term) NoteStamp(target types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stamped[target] = true
}
