package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/lab/world"
)

// previous is a binary of the release before this one. SPRINGTIDE_PREVIOUS names the folder: springtide, and springtide-lab, in which its scheduler is.
func previous(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("SPRINGTIDE_PREVIOUS")
	if dir == "" {
		t.Skip("no build of another release to play with; to run it: SPRINGTIDE_PREVIOUS=FOLDER with springtide and springtide-lab of that release")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOneReleaseApart: controllers of two releases take over from each other while parcels are lent and recalled, on
// this release's definitions, rights and store, and each release's controller works with the scheduler of the other.
func TestOneReleaseApart(t *testing.T) {
	t.Run("an upgrade of the controller while parcels are lent, and a rollback while they are recalled", func(t *testing.T) {
		upgradeAndRollBack(t, previous(t, "springtide"))
	})
	t.Run("the scheduler of the release before", func(t *testing.T) {
		o := small(6 * time.Hour)
		o.Plane.LabBinary = previous(t, "springtide-lab")
		asked, home := false, 0
		_, s := play(t, o, func(w *world.World, s *watcher) bool {
			asked = asked || flood(w, s)
			home = len(s.returned("Node")) + len(s.returned("Socket"))
			return home > 0
		})
		if home == 0 {
			t.Errorf("no machine and no socket went through all phases; loans: %s", s.summary())
		}
	})
}

// upgradeAndRollBack begins with the release before in the lead and this one as the standby.
func upgradeAndRollBack(t *testing.T, before string) {
	const older, newer = 0, 1
	o := small(6 * time.Hour)
	o.Controllers, o.Binaries = 2, map[int]string{older: before}
	var lent, recalled v1alpha1.Loan // as the release before left them behind, and as this one did
	upgraded, back, rolled := false, false, false
	w, s := play(t, o, func(w *world.World, s *watcher) bool {
		switch {
		case lent.Name == "":
			if s.in("Lent") < 2 {
				return false
			}
			if leader(t, s) != older {
				t.Fatal("the release before does not lead")
			}
			for _, l := range s.loans {
				if l.Status.Phase == "Lent" {
					lent = l
				}
			}
			w.SetSpeed(slow)
			if err := w.KillController(older); err != nil {
				t.Fatal(err)
			}
			s.apply("festivalplans", festival("flood", w.Now().Add(10*time.Minute), 3*time.Hour, s.services(), 1))
		case !upgraded:
			upgraded = leader(t, s) == newer
		case !back:
			if err := w.StartController(older); err != nil {
				t.Fatal(err)
			}
			back = true
		case recalled.Name == "":
			for _, l := range s.loans {
				if l.Status.Phase == "Noticed" && l.Status.LeaderEpoch > lent.Status.LeaderEpoch {
					recalled = l
				}
			}
			if recalled.Name == "" {
				return false
			}
			if err := w.KillController(newer); err != nil {
				t.Fatal(err)
			}
		case !rolled:
			rolled = leader(t, s) == older
		default:
			return s.loans[recalled.Name].Status.Phase == "Returned"
		}
		return false
	})
	if !rolled {
		t.Fatalf("upgraded %v, recalled %q, rolled back %v before %s; loans: %s", upgraded, recalled.Name, rolled, w.Now(), s.summary())
	}
	if l := s.loans[lent.Name]; l.UID != lent.UID {
		t.Errorf("loan %s of the release before became another object", lent.Name)
	}
	l := s.loans[recalled.Name]
	if phases(&l) != "Emptying Lent Noticed Draining Returned" {
		t.Errorf("loan %s went %s", l.Name, phases(&l))
	}
	if l.Status.LeaderEpoch <= recalled.Status.LeaderEpoch {
		t.Errorf("after the rollback loan %s was brought home under epoch %d, the upgraded leader's was %d", l.Name, l.Status.LeaderEpoch, recalled.Status.LeaderEpoch)
	}
}
