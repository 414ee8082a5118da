// Package check searches the protocol of loans: every state that two controllers, two parcels, two jobs (or a gang) and a tide can get into
// within stated bounds, with stale watches, refused writes, crashes, an old leader that still acts, freezes, schedulers that bind late, and
// machines that die and come back. docs/model-check.md says what is real and what is abstracted, docs/model-check-reference.md what each guard is worth.
//
// A search (search.go) goes over states (state.go, canonical.go) by the transitions of the world (kind.go, world.go) and of controllers
// (cycle.go), which plan (plan.go) from snapshots (snapshot.go) of what they see (view.go), write to the API (act.go), and are judged
// (property.go).
package check
