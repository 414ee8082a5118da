package convert

import (
	"time"

	"github.com/springtide/springtide/api/v1alpha1"
	"github.com/springtide/springtide/fleet"
)

// The API server fills in the defaults of package v1alpha1; they are taken from there again for objects that were stored by an older
// CRD, so that there is one answer everywhere. Here are only those that the API has no field for.
const (
	// defaultCPU is the utilisation held when neither SLO nor metrics name one: at 60 % a service stands the loss of one
	// zone of
	// three (60 % × 3/2 = 90 %).
	defaultCPU = 0.6
)

// modeOf reads a mode; what is left out, or unknown, observes.
func modeOf(s string) fleet.Mode {
	switch m := fleet.Mode(s); m {
	case fleet.Recommend, fleet.Auto:
		return m
	}
	return v1alpha1.DefaultMode
}

// Or is the value behind a pointer, or another one where there is none.
func Or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func seconds(p *int32, otherwise int32) time.Duration {
	return time.Duration(Or(p, otherwise)) * time.Second
}

func share(percent *int32, otherwise int32) float64 { return float64(Or(percent, otherwise)) / 100 }

func orText[T ~string](s string, otherwise T) T {
	if s == "" {
		return otherwise
	}
	return T(s)
}
