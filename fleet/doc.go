// Package fleet is Springtide's vocabulary: identifiers, amounts, and the immutable facts of one moment (a [Snapshot]) that every
// decision is computed from. It also holds the [Loan]'s phase machine, the one place where a parcel may change hands.
//
// The package imports the standard library alone and does no work: no clock, no I/O, no goroutine. Types refuse nonsense where they
// can: identifiers are distinct types, amounts saturate instead of overflowing, and "unknown" is a value of its own, never zero.
package fleet
