package usage

import (
	_ "embed"
	"errors"
	"fmt"
	"testing"
)

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{ExitOK: nil, ExitFailure: Found("%d problems", 2), ExitUsage: fmt.Errorf("wrapped: %w", Error{errors.New("x")})} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}
