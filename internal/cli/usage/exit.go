package usage

import (
	"errors"
)

// Exit codes of every verb.
const (
	ExitOK      = 0 // done
	ExitFailure = 1 // it failed, or it found something
	ExitUsage   = 2 // wrong flags or invalid input
)

// Error marks what the caller can fix by other flags or other input.
type Error struct{ Err error }

// Error implements error.
func (e Error) Error() string { return e.Err.Error() }

// Unwrap gives what was wrong.
func (e Error) Unwrap() error { return e.Err }

// ExitCode is the exit code of a command that returned err.
func ExitCode(err error) int {
	var usage Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	}
	return ExitFailure
}
