#!/usr/bin/env bash
# Prints the packages that the race detector is worth its cost for: those whose own files start a goroutine, guard something against one, or
# serve HTTP. A test that starts goroutines is of such a package. The rest has nothing that could race: archtest refuses goroutines and package
# variables that change in the pure rooms. Arguments are packages to leave out, as one regular expression.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-^$}
concurrent='^\s*go (func\b|[A-Za-z_.]+\()|\.Go\(func|\bsync\.(Mutex|RWMutex|WaitGroup|Map|Once\b|Pool|Cond)|\batomic\.|\bhttp\.ResponseWriter'
"${GO:-go}" list -f '{{$d := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$d}}/{{.}}{{end}}' ./... | while read -r pkg files; do
	[[ $pkg =~ $out ]] && continue
	# shellcheck disable=SC2086 # a list of files
	if [ -n "$files" ] && grep -qE "$concurrent" $files; then echo "$pkg"; fi
done
