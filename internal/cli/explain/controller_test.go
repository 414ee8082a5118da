package explain

import (
	"fmt"
	"strings"
	"testing"
)

func TestExplainAsksTheController(t *testing.T) {
	w := newWorld(t)
	got := w.Run("explain", "service", "shop/cart")
	if !strings.Contains(got, "Decisions") || !strings.Contains(got, "no way to the controller") {
		t.Errorf("without a controller:\n%s", got)
	}
	fmt.Fprint(t.Output(), got)
}
