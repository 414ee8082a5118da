package apitest

import (
	"os"
	"strings"
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/internal/validate/offline"
)

// TestOfflineWorkIsDocumented: the page for teams names what they write and read, and its ElasticJob passes.
func TestOfflineWorkIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/offline-work.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, name := range []string{v1alpha1.AnnotationNotice, v1alpha1.AnnotationAck, v1alpha1.AnnotationHeartbeat, v1alpha1.AnnotationCheckpoint,
		v1alpha1.TaintHolder, v1alpha1.LabelOffline, v1alpha1.LabelHome, v1alpha1.LabelStable, v1alpha1.LabelTenant, v1alpha1.AnnotationElasticSettings} {
		if !strings.Contains(text, name) {
			t.Errorf("docs/offline-work.md does not name %s", name)
		}
	}
	objects := 0
	for i, block := range strings.Split(text, "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "kind:") {
			continue
		}
		result, err := offline.Files([]offline.Input{{Name: "offline-work.md", Text: []byte(block)}}, offline.Options{})
		if err != nil {
			t.Fatal(err)
		}
		objects += result.Objects
		for _, f := range result.Findings {
			t.Errorf("block %d: %s", i, f)
		}
	}
	if objects != 3 {
		t.Errorf("%d objects of ours were judged, want the three ElasticJobs", objects)
	}
}
