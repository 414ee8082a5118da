// Package snapshot joins what is watched into the facts of one moment.
package snapshot
