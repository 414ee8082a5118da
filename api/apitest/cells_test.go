package apitest

import (
	"slices"
	"testing"

	"github.com/springtide/springtide/api/v1alpha1"
)

func TestCells(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "0": {0}, "0-1,3": {0, 1, 3}, "2,4-7,1023": {2, 4, 5, 6, 7, 1023}} {
		got, err := v1alpha1.ParseCells(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is read as %v (%v), want %v", text, got, err, want)
		}
		if back := v1alpha1.FormatCells(want); back != text {
			t.Errorf("%v is written as %q, want %q", want, back, text)
		}
	}
	if got := v1alpha1.FormatCells([]int{3, 1, 0, 1}); got != "0-1,3" {
		t.Errorf("unsorted cells are written as %q", got)
	}
	for _, text := range []string{" ", "a", "-1", "1-", "-", "3-1", "1-1", "0,1", "0,0", "1,0", "0-1,1", "01", "+1", "1024", "0-99999999", "0,", "0-64"} {
		if got, err := v1alpha1.ParseCells(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// FuzzCells: whatever stands in the annotation is refused, or written back the same.
func FuzzCells(f *testing.F) {
	for _, s := range []string{"", "0", "0-1,3", "0-63", "1-,", "1023"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cells, err := v1alpha1.ParseCells(s)
		if err != nil {
			return
		}
		if back := v1alpha1.FormatCells(cells); back != s {
			t.Errorf("%q is read as %v and written as %q", s, cells, back)
		}
		if len(cells) > 64 || !slices.IsSorted(cells) {
			t.Errorf("%q is read as %v", s, cells)
		}
	})
}
