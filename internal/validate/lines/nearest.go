package lines

import "strings"

// Nearest is the known name that a misspelt one most likely means; empty when none is near. Two edits catch a slip and a plural, and are
// less than what tells two of our fields apart.
func Nearest(name string, known []string) string {
	best, at := 3, ""
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < best {
			best, at = d, k
		}
	}
	return at
}

// distance counts the single-letter edits between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			keep := diagonal
			if a[i] != b[j] {
				keep++
			}
			diagonal = row[j+1]
			row[j+1] = min(keep, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
