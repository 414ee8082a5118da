// Package csvseries reads and writes series as long CSV: one row a value, `id,ts,value`, with ts in seconds since the epoch or RFC 3339.
// It reads the lists of holidays that go with them too.
//
// Input is judged whole before anything is made of it: [Survey] reads it once and finds the first bad row, and whether the rows of each id
// stand together. [Groups] reads it again and yields one id after the other; where they stand together it holds one id at a time.
package csvseries
