package world

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
)

// TestPromisesOfAShare: the lab's own reading of who may land where, state by state. It is written apart from the product's, which it judges.
func TestPromisesOfAShare(t *testing.T) {
	entry := func(holder, next string, cells ...int32) v1alpha1.ShareParcel {
		return v1alpha1.ShareParcel{Cells: cells, Holder: holder, Next: next}
	}
	for _, c := range []struct {
		name           string
		parcels        []v1alpha1.ShareParcel
		home, lent     []int
		online, borrow bool
	}{
		{"at home", nil, []int{0, 1, 2, 3}, nil, true, false},
		{"emptied", []v1alpha1.ShareParcel{entry("online", "offline", 0, 1, 2, 3)}, nil, nil, false, false},
		{"lent", []v1alpha1.ShareParcel{entry("offline", "", 0, 1, 2, 3)}, nil, []int{0, 1, 2, 3}, false, true},
		{"called home", []v1alpha1.ShareParcel{entry("offline", "online", 0, 1, 2, 3)}, nil, nil, false, false},
		{"returned", []v1alpha1.ShareParcel{entry("online", "", 0, 1, 2, 3)}, []int{0, 1, 2, 3}, nil, true, false},
		{"a socket returned", []v1alpha1.ShareParcel{entry("online", "", 2, 3)}, []int{0, 1, 2, 3}, nil, true, false},
		{"a socket returned, one drains", []v1alpha1.ShareParcel{entry("offline", "online", 0, 1), entry("online", "", 2, 3)}, []int{2, 3}, nil, true, false},
		{"a socket returned, one is lent", []v1alpha1.ShareParcel{entry("offline", "", 0, 1), entry("online", "", 2, 3)}, []int{2, 3}, []int{0, 1}, true, false},
		{"a socket is lent", []v1alpha1.ShareParcel{entry("offline", "", 0, 1)}, []int{2, 3}, []int{0, 1}, false, true},
		{"a socket is lent, one is emptied", []v1alpha1.ShareParcel{entry("offline", "", 0, 1), entry("online", "offline", 2, 3)}, nil, []int{0, 1}, false, true},
	} {
		got := promisesOf(c.parcels, "online")
		slices.Sort(got.home)
		if !slices.Equal(got.home, c.home) || !slices.Equal(got.lent, c.lent) || got.homeOpen != c.online || got.awayOpen != c.borrow {
			t.Errorf("%s: %+v, want home %v, lent %v, open to online %v, to borrowers %v", c.name, got, c.home, c.lent, c.online, c.borrow)
		}
	}
}
