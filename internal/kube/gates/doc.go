// Package gates opens the readiness gates of new pods. It decides nothing: a pod with the gate is not ready before its
// condition is True, whatever the mode of its service, and with or without a leader or a freeze.
package gates
