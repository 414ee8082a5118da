package promql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// TestAsk: however many namespaces are too much for the source, the number of questions is bounded, those namespaces are refused, and most of the others are
// answered, each once; an error of the source ends all at once.
func TestAsk(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("ns-%03d", i)
	}
	tooMuch, down := &apiv1.Error{Type: apiv1.ErrExec}, errors.New("connection refused")
	for _, c := range []struct {
		name     string
		bad      int // every so many-th namespace
		of       error
		answered int // at least
	}{
		{"none", 0, tooMuch, 1000},
		{"one", 1000, tooMuch, 999},
		{"three", 400, tooMuch, 997},
		{"eight", 130, tooMuch, 700},
		{"all", 1, tooMuch, 0},
		{"the source is down", 1000, down, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			isBad := func(i int) bool { return c.bad > 0 && i%c.bad == 0 }
			answered := map[string]int{}
			questions := 0
			refused, err := ask(scope{}, names, func(sc scope) error {
				questions++
				var in []string
				for i, n := range names {
					if sc.matcher == "" || strings.Contains(sc.matcher, n) {
						if isBad(i) {
							return c.of
						}
						in = append(in, n)
					}
				}
				for _, n := range in {
					answered[n]++
				}
				return nil
			})
			if errors.Is(c.of, down) {
				if !errors.Is(err, down) || questions != 1 {
					t.Errorf("%v after %d questions", err, questions)
				}
				return
			}
			if err != nil || questions > mostQuestions || len(answered) < c.answered || len(answered)+len(refused) != len(names) {
				t.Errorf("%v; %d questions, %d namespaces answered, %d refused", err, questions, len(answered), len(refused))
			}
			for i, n := range names {
				if isBad(i) && refused[n] == nil || answered[n] > 1 {
					t.Errorf("%s: refused %v, answered %d times", n, refused[n], answered[n])
				}
			}
		})
	}
}
