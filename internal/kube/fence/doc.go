// Package fence keeps the writes of a leader within its lease: it stands in the transport of the writing clients.
package fence
