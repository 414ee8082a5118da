package model

import (
	"math"
	"testing"
	"time"
)

func TestProfileWithout(t *testing.T) {
	c := CycleOf(time.Hour)
	weeks := []float64{1, 2, 4, 8, 3}
	all, before := newProfile(c), newProfile(c)
	for i, v := range weeks {
		all.learn(5, c, v, 0)
		if i < len(weeks)-1 {
			before.learn(5, c, v, 0)
		}
	}
	// Without the newest value a slot is what it was before it.
	if got, want := all.without(5, c, 3, 0), before.at(5, c); math.Abs(got-want) > 1e-12 {
		t.Errorf("without the newest value: %v, want %v", got, want)
	}
	// By hand: the weights of the five are 4/27 (three times), 2/9 and 1/3, and the mean of the others without the 8 is (4/27·7 + 1/3·3)/(7/9).
	if got, want := all.without(5, c, 8, 1), (4.0/27*7+1)/(7.0/9); math.Abs(got-want) > 1e-12 {
		t.Errorf("without the value of the week before: %v, want %v", got, want)
	}
	one := newProfile(c)
	one.learn(5, c, 7, 0)
	if v := one.without(5, c, 7, 0); !math.IsNaN(v) {
		t.Errorf("without its only value a slot is %v", v)
	}
	if v := one.without(6, c, 7, 0); !math.IsNaN(v) {
		t.Errorf("an empty slot is %v", v)
	}
}
