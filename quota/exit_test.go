package quota

import (
	"reflect"
	"testing"
	"time"

	"github.com/springtide/springtide/fleet"
)

// A debt is due after a whole drain time of ten minutes, counted from when so much was owed first: a notice for less,
// or for something that no tenant waits for, covers none of it, and later growth delays nothing. Amounts are cores of
// 100 that are used, if nothing else is said.
func TestNoticeOfWhatGrows(t *testing.T) {
	type step struct {
		at            time.Duration
		owed, offline int64
		used          int64
		due           int64
		dueOffline    int64
	}
	const minute, last = time.Minute, 10 * time.Minute
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"a debt", []step{{at: 0, owed: 30}, {at: last - 15*time.Second, owed: 30}, {at: last, owed: 30, due: 30}, {at: 3 * last, owed: 30, due: 30}}},
		{"over for hours with nothing owed, then a debt", []step{{at: 0}, {at: last}, {at: 180 * minute, owed: 30}, {at: 180*minute + last, owed: 30, due: 30}}},
		{"it grows just before the deadline", []step{{at: 0, owed: 1}, {at: last - 15*time.Second, owed: 40}, {at: last, owed: 40, due: 1},
			{at: 2*last - 30*time.Second, owed: 40, due: 1}, {at: 2*last - 15*time.Second, owed: 40, due: 40}}},
		{"it grows after it", []step{{at: 0, owed: 10}, {at: last, owed: 25, due: 10}, {at: 2 * last, owed: 25, due: 25}}},
		{"it grows all the time", []step{{at: 0, owed: 1}, {at: minute, owed: 2}, {at: 3 * minute, owed: 3}, {at: 4 * minute, owed: 4}, {at: last, owed: 9, due: 1},
			{at: 13 * minute, owed: 9, due: 3}, {at: 14 * minute, owed: 9, due: 3}, {at: 20 * minute, owed: 9, due: 9}}},
		{"it flickers", []step{{at: 0, owed: 30}, {at: minute}, {at: 2 * minute, owed: 30}, {at: 3 * minute, owed: 31}, {at: 9 * minute}, {at: last, owed: 30, due: 30},
			{at: 13 * minute, owed: 31, due: 31}}},
		{"it falls", []step{{at: 0, owed: 30}, {at: minute, owed: 5}, {at: last, owed: 5, due: 5}, {at: 11 * minute, owed: 30, due: 5}, {at: 21 * minute, owed: 30, due: 30}}},
		{"what is given back is not taken again from what grew", []step{{at: 0, owed: 30}, {at: 5 * minute, owed: 40}, {at: last, owed: 40, due: 30},
			{at: 11 * minute, owed: 10, used: 70}, {at: 14 * minute, owed: 10, used: 70}, {at: 15 * minute, owed: 10, used: 70, due: 10}}},
		{"given back before the deadline, while others want more", []step{{at: 0, owed: 30}, {at: 5 * minute, owed: 30, used: 80}, {at: last, owed: 30, used: 80, due: 10},
			{at: 15 * minute, owed: 30, used: 80, due: 30}}},
		{"it is over, and comes again", []step{{at: 0, owed: 30}, {at: last, owed: 30, due: 30}, {at: 11 * minute}, {at: 12 * minute, owed: 30}, {at: 22 * minute, owed: 30, due: 30}}},
		{"who uses more since then owes no more of it", []step{{at: 0, owed: 30}, {at: 5 * minute, owed: 50, used: 120}, {at: last, owed: 50, used: 120, due: 30}}},
		{"what offline work owes falls", []step{{at: 0, offline: 30}, {at: last, offline: 5, dueOffline: 5}}},
		{"that of offline work is told for itself", []step{{at: 0, owed: 30}, {at: last, owed: 30, offline: 20, due: 30}, {at: 2 * last, owed: 30, offline: 20, due: 30, dueOffline: 20}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := fleet.Tenant{Drain: last}
			for _, s := range c.steps {
				if s.used == 0 {
					s.used = 100
				}
				got := Share{OverOnline: cores(50), Owed: cores(s.owed), OverOffline: cores(s.offline)}
				got.notify(&x, &Want{Used: cores(s.used), Offline: cores(100)}, now.Add(s.at))
				if got.Due != cores(s.due) || got.DueOffline != cores(s.dueOffline) {
					t.Fatalf("after %v %v and %v offline are due, want %d and %d: %+v", s.at, got.Due, got.DueOffline, s.due, s.dueOffline, got.Notices)
				}
				if !got.Due.IsZero() && got.DueBy.After(now.Add(s.at)) {
					t.Fatalf("after %v something is due by %v from now", s.at, got.DueBy.Sub(now.Add(s.at)))
				}
				x.OverSince, x.Notices = got.OverSince, got.Notices
			}
		})
	}
}

// However a debt grows, the notices that are kept are few, and a drain time that is made longer meanwhile brings nothing forward.
func TestNoticesAreFew(t *testing.T) {
	x := fleet.Tenant{Drain: time.Minute}
	for k := range 1000 {
		at := now.Add(time.Duration(k) * 15 * time.Second)
		if k%100 == 0 {
			x.Drain *= 2
		}
		s := Share{Owed: cores(int64(k) + 1)}
		s.notify(&x, &Want{Used: cores(2000)}, at)
		if len(s.Notices) > MostNotices {
			t.Fatalf("%d notices", len(s.Notices))
		}
		if since := k - int(x.Drain/(15*time.Second)); !s.Due.Fits(cores(int64(max(since+1, 0)))) {
			t.Fatalf("cycle %d: %v are due of %d owed a drain time ago", k, s.Due, since+1)
		}
		x.OverSince, x.Notices = s.OverSince, s.Notices
	}
}

// A drain time that is made much longer while notices run leaves all of them running: no more are given than are kept,
// and none is forgotten.
func TestNoticesOfALongerDrain(t *testing.T) {
	x := fleet.Tenant{Drain: time.Hour, OverSince: now.Add(-time.Minute)}
	for k := range MostNotices {
		x.Notices = append(x.Notices, fleet.QuotaNotice{Since: now.Add(-time.Duration(40-k) * time.Minute), Offline: cores(int64(k) + 1), OfflineUsed: cores(100)})
	}
	s := Share{OverOffline: cores(50)}
	s.notify(&x, &Want{Offline: cores(100)}, now)
	if !reflect.DeepEqual(s.Notices, x.Notices) || !s.OverSince.Equal(x.OverSince) {
		t.Errorf("%d notices, the last of %v: %+v", len(s.Notices), s.OverSince, s.Notices)
	}
}

// Parcels are noticed and due by class, as resources are: what was left since a notice is given back, growth gets a new
// notice.
func TestNoticeOfParcels(t *testing.T) {
	node, socket := fleet.ParcelClass{Kind: fleet.KindNode}, fleet.ParcelClass{Kind: fleet.KindSocket}
	const minute = time.Minute
	x := fleet.Tenant{Drain: 10 * minute}
	for _, c := range []struct {
		at                  time.Duration
		node, nodes, socket int64 // owed of how many, and owed of 9
		due, dueSocket      int64
	}{
		{0, 2, 9, 0, 0, 0},
		{9 * minute, 3, 9, 1, 0, 0},
		{10 * minute, 3, 9, 1, 2, 0},
		{11 * minute, 2, 8, 1, 1, 0},
		{12 * minute, 2, 10, 1, 1, 0},
		{19 * minute, 2, 8, 1, 2, 1},
		{20 * minute, 1, 8, 0, 1, 0},
		{21 * minute, 0, 8, 0, 0, 0},
		{22 * minute, 2, 8, 0, 0, 0},
	} {
		s := Share{Parcels: []ParcelShare{{Class: node, Used: c.nodes, Over: c.node}, {Class: socket, Used: 9, Over: c.socket}}}
		if s.Owes() {
			s.notify(&x, &Want{}, now.Add(c.at))
		}
		if s.Parcels[0].Due != c.due || s.Parcels[1].Due != c.dueSocket {
			t.Fatalf("after %v %d and %d are due, want %d and %d: %+v", c.at, s.Parcels[0].Due, s.Parcels[1].Due, c.due, c.dueSocket, s.Notices)
		}
		if (c.due > 0 || c.dueSocket > 0) != s.HasDue() || s.HasDue() && s.DueBy.After(now.Add(c.at)) {
			t.Fatalf("after %v: due %v, by %v", c.at, s.HasDue(), s.DueBy)
		}
		x.OverSince, x.Notices = s.OverSince, s.Notices
	}
}
