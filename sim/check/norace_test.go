//go:build !race

package check

// raceEnabled says that the race detector watches, which makes everything some ten times slower.
const raceEnabled = false
