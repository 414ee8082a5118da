package report

import "testing"

func TestPercentText(t *testing.T) {
	for share, want := range map[float64]string{1: "100%", 0.999: "99.9%", 0.9995: "99.95%", 0.99999999: "99.999%",
		0.5: "50%", 0: "0%", 0.995: "99.5%"} {
		if got := percentText(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}
