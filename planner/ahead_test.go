package planner

import (
	"testing"
	"time"

	"github.com/springtide/springtide/hpa"
)

// Each step of a want holds the most that a target asks for in it; beyond its tide, what it asks for now.
func TestAhead(t *testing.T) {
	target := hpa.Target{Replicas: 4, AheadStep: 5 * time.Minute, Ahead: []int32{4, 9, 5, 6, 6, 6, 2}}
	got := ahead(&target)
	want := [daySteps]int32{9, 6, 2}
	for k := 3; k < daySteps; k++ {
		want[k] = 4
	}
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
	target.Ahead = make([]int32, 2*24*12)
	target.Ahead[24*12+1] = 50 // after the day that tenants are told of
	if got := ahead(&target); got != ahead(&hpa.Target{Replicas: 4}) {
		t.Errorf("two days: %v", got)
	}
}
