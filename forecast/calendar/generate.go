//go:build chinatable

package calendar

// The table is written again once a year, when the State Council has announced the next one. It needs Node, so a plain
// `go generate ./...` does not come here.
//go:generate ./china_table.sh
