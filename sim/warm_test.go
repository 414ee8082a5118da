package sim

import (
	"context"
	"reflect"
	"testing"
)

// A row that begins with what another loop learned of the history comes to what it does when it learns by itself.
func TestRowsShareWhatWasLearned(t *testing.T) {
	long(t)
	b := tiny(20, 3, tide(6, 40), tide(10, 60))
	shared, alone := Share(b), Share(b)
	alone.warm.once.Do(func() {}) // no service learned anything
	with, err := Run(context.Background(), b, whole, shared)
	if err != nil {
		t.Fatal(err)
	}
	if len(shared.warm.portraits) != 2 || len(alone.warm.portraits) != 0 {
		t.Fatal("nothing was shared, or all of it")
	}
	if without, err := Run(context.Background(), b, whole, alone); err != nil || !reflect.DeepEqual(with, without) {
		t.Errorf("%v: %+v\n%+v", err, with, without)
	}
}
