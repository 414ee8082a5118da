package screen

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/springtide/springtide/api/v1alpha1"
)

func TestColoursByMeaning(t *testing.T) {
	var out bytes.Buffer
	table := &Table{Out: &out, Colours: true, Tight: true}
	if err := table.Print([][]string{{"NAME", "STATE", "REASON"}, {"OK", "Refused", "OK"}, {"b", "OK", "x"}, {"c", "Whatever", "y"}}); err != nil {
		t.Fatal(err)
	}
	want := "NAME  STATE     REASON\nOK    " + colourBad + "Refused" + colourEnd + "   OK\nb     " + colourGood + "OK" + colourEnd + "        x\nc     Whatever  y\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", &out, want)
	}
	if ColoursFor(&out) {
		t.Error("what is no terminal is coloured")
	}
}

func TestManagedFieldsAreLeftOut(t *testing.T) {
	s := &v1alpha1.ElasticService{ObjectMeta: metav1.ObjectMeta{Name: "cart", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := Encode(&out, format, map[string]any{"items": []any{s}}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "anagedFields") || !strings.Contains(out.String(), "cart") {
			t.Errorf("%s: %s", format, &out)
		}
	}
}
