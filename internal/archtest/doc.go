// Package archtest proves that imports go strictly down, and that what is pure stays pure. It reads the direct imports and calls of our
// own packages; what third-party code does inside is its own affair.
package archtest

//go:generate go test . -run DepguardKnows -update
