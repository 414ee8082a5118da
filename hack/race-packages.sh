#!/usr/bin/env bash
# Prints the packages that the race detector is worth its cost for: those whose files, tests included, start a goroutine, guard something
# against one, or serve HTTP. The rest has nothing that could race: archtest refuses goroutines and package variables that change in the pure
# rooms. Arguments are packages to leave out, as one regular expression.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-^$}
concurrent='^\s*go (func\b|[A-Za-z_.]+\()|\.Go\(func|\bsync\.(Mutex|RWMutex|WaitGroup|Map|Once\b|Pool|Cond)|\batomic\.|\bhttptest\.NewServer'
"${GO:-go}" list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r pkg dir; do
	[[ $pkg =~ $out ]] && continue
	if grep -qE "$concurrent" "$dir"/*.go; then echo "$pkg"; fi
done
