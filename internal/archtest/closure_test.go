package archtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// peers are packages that model what Springtide is compared with. The controller has no use for them.
var peers = []string{"forecast/peer", "forecast/backtest", "internal/backtest", "sim"}

// TestTheControllerHoldsNoPeer follows every import of `springtide run`, direct and indirect.
func TestTheControllerHoldsNoPeer(t *testing.T) {
	deps := closure(t, "internal/run")
	if len(held(deps, []string{"planner", "internal/kube", "internal/loop"})) != 3 {
		t.Fatal("the closure lacks the controller itself: the test looks in the wrong place")
	}
	for _, p := range held(deps, peers) {
		t.Errorf("internal/run imports %s, directly or not: what compares with peers stays in internal/cli", p)
	}
	// The same question of a command that does compare: it must be answered with yes.
	if got := held(closure(t, "internal/cli"), peers); len(got) != len(peers) {
		t.Errorf("of internal/cli only %v were found: the test does not see peers any more", got)
	}
}

// TestTheJudgeSharesNoCode follows every import of the judge: it holds nothing of this module but itself, directly or not.
func TestTheJudgeSharesNoCode(t *testing.T) {
	own := 0
	for _, pkg := range []string{"lab/judge", "lab/judge/watch"} {
		for _, d := range closure(t, pkg) {
			p, ok := strings.CutPrefix(d, module)
			switch {
			case !ok:
			case under(p, "lab/judge"):
				own++
			default:
				t.Errorf("%s imports %s, directly or not: what judges shares no code with what is judged", pkg, p)
			}
		}
	}
	if own != 3 {
		t.Errorf("the closures hold %d packages of the judge, want 3: the test looks in the wrong place", own)
	}
	if why := refuseImport("lab/judge/watch/x.go", module+"api/v1alpha1"); why == "" {
		t.Error("an import of the API's types is not refused")
	}
	if why := refuseImport("lab/judge/x.go", module+"fleet"); why == "" {
		t.Error("an import of the fleet's types is not refused")
	}
}

// held are those of the rooms of which a closure holds a package.
func held(deps, rooms []string) []string {
	var out []string
	for _, room := range rooms {
		for _, d := range deps {
			if own, ok := strings.CutPrefix(d, module); ok && under(own, room) {
				out = append(out, room)
				break
			}
		}
	}
	return out
}

// closure is every package that a package of ours is built from.
func closure(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "./"+pkg)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
