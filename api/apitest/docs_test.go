package apitest

import (
	"os"
	"strings"
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate/offline"
)

// TestOfflineWorkIsDocumented: the pages for teams name what they write and read, and their ElasticJobs pass.
func TestOfflineWorkIsDocumented(t *testing.T) {
	text := ""
	for _, name := range []string{"offline-work", "offline-jobs", "offline-reference"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text += string(page)
	}
	for _, name := range []string{v1alpha1.AnnotationNotice, v1alpha1.AnnotationAck, v1alpha1.AnnotationHeartbeat, v1alpha1.AnnotationCheckpoint,
		v1alpha1.TaintHolder, v1alpha1.LabelOffline, v1alpha1.LabelHome, v1alpha1.LabelStable, v1alpha1.LabelTenant, v1alpha1.AnnotationElasticSettings} {
		if !strings.Contains(text, name) {
			t.Errorf("no page on offline work names %s", name)
		}
	}
	if objects := judgedBlocks(t, text); objects != 3 {
		t.Errorf("%d objects of ours were judged, want the three ElasticJobs", objects)
	}
}

// TestServiceLevelsAreDocumented: the objects of the page pass.
func TestServiceLevelsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/slo.md")
	if err != nil {
		t.Fatal(err)
	}
	if objects := judgedBlocks(t, string(page)); objects != 2 {
		t.Errorf("%d objects of ours were judged, want two ElasticServices", objects)
	}
}

// judgedBlocks judges the objects in a page and counts them.
func judgedBlocks(t *testing.T, text string) int {
	t.Helper()
	objects := 0
	for i, block := range strings.Split(text, "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "kind:") {
			continue
		}
		result, err := offline.Files([]offline.Input{{Name: "page.md", Text: []byte(block)}}, offline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		objects += result.Objects
		for _, f := range result.Findings {
			t.Errorf("block %d: %s", i, f)
		}
	}
	return objects
}
