// Package act carries plans out: it sends the writes that the protocol's session says, each with its preconditions.
package act
