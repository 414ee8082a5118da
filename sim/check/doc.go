// Package check searches the protocol of loans: every state that two controllers, two parcels, two jobs and a tide can get into within stated
// bounds, with stale watches, refused writes, crashes, an old leader that still acts, and machines that die and come back. docs/model-check.md
// says what is real, what is abstracted, and what each guard is worth.
package check
