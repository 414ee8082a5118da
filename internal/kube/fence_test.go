package kube

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/springtide/springtide/deploy/crd"
	"github.com/springtide/springtide/internal/kube/election"
	"github.com/springtide/springtide/internal/kube/fence"
)

// The rules of the kinds that the leader alone writes speak the words that the fence listens for, and no rule on a status that tenants may write
// does: it would end the leader.
func TestEpochRulesSpeakTheFencesWords(t *testing.T) {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(crd.Files, f)
		if err != nil {
			t.Fatal(err)
		}
		fenced := slices.ContainsFunc(election.FencedResources(),
			func(r schema.GroupVersionResource) bool { return strings.Contains(f, r.Resource) })
		if strings.Contains(string(text), fence.StaleEpoch) != fenced {
			t.Errorf("%s: a rule says %q: %v, want %v", f, fence.StaleEpoch, !fenced, fenced)
		}
	}
}
