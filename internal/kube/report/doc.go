// Package report tells operators of a cycle: statuses with their conditions, and events.
package report
