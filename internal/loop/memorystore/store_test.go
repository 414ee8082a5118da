package memorystore

import (
	"errors"
	"testing"

	"github.com/springtide/springtide/fleet"
	"github.com/springtide/springtide/internal/loop"
	"github.com/springtide/springtide/portrait"
)

// Maps go in and come out by value: a loop that goes on with what it saved, or loaded, changes nothing that is kept.
func TestMapsAreCopied(t *testing.T) {
	s := &Store{}
	if err := s.SavePortraits(t.Context(), []portrait.Portrait{{Service: "shop/cart"}}); err != nil {
		t.Fatal(err)
	}
	loaded, err := s.LoadPortraits(t.Context())
	if err != nil || len(loaded) != 1 {
		t.Fatalf("%v, %v", loaded, err)
	}
	delete(loaded, "shop/cart")
	saved := map[fleet.ServiceID]loop.Summary{"shop/cart": {}}
	if err := s.SaveSummaries(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	delete(saved, "shop/cart")
	if again, _ := s.LoadPortraits(t.Context()); len(again) != 1 || len(s.Summaries) != 1 {
		t.Errorf("%d portraits and %d summaries are kept, want one of each", len(again), len(s.Summaries))
	}
}

// While the store is down it answers with an error, and keeps what it has.
func TestDownKeeps(t *testing.T) {
	down := errors.New("down")
	s := &Store{Portraits: map[fleet.ServiceID]portrait.Portrait{"shop/cart": {}}}
	s.Down = func() error { return down }
	if err := s.SavePortraits(t.Context(), nil); !errors.Is(err, down) {
		t.Errorf("saved while down: %v", err)
	}
	if _, err := s.LoadPortraits(t.Context()); !errors.Is(err, down) {
		t.Errorf("loaded while down: %v", err)
	}
	if len(s.Portraits) != 1 || s.Saves != 1 {
		t.Errorf("%d portraits, %d saves", len(s.Portraits), s.Saves)
	}
}
