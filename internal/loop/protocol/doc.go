// Package protocol is what carrying out a plan means, as data: which writes each action makes, in which order, under which condition, what a
// conflict means, and what takes a half-done action back.
//
// In comes a plan and facts that are fresher than those it was made from. Out come requests, one at a time for each action: a [Write], a
// [Read], or a refusal with its reason. The executor sends the request and gives the answer back; it decides nothing. internal/kube executes
// with client-go, the simulators on [fleetapi], and sim/check interprets the same writes on its packed state. So what they prove is what runs.
//
// The package is pure: no I/O, clock or goroutine. A [Session] is not safe for concurrent use; an executor with many goroutines guards it.
//
// [fleetapi]: github.com/springtide/springtide/internal/loop/fleetapi
package protocol
