//go:build race

package sim

// raceEnabled says that the race detector watches, which makes everything some ten times slower.
const raceEnabled = true
