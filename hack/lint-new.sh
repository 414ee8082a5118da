#!/usr/bin/env bash
# Complexity and line length of what is newer than the commit in tools/lint.since (.golangci-new.yml). Older findings are left alone. A function
# is judged where its first line is new or changed. A clone without that commit, as a shallow one is, checks what is not committed yet.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	echo "  complexity and line length: not checked, since this is no git checkout"
	exit 0
fi
since=${SINCE:-$(grep -v '^#' tools/lint.since)}
if ! git rev-parse -q --verify "$since^{commit}" >/dev/null; then
	echo "  complexity and line length: this clone does not have $since, so only what is not committed is checked (git fetch --unshallow)"
	since=HEAD
fi
patch=$(mktemp)
trap 'rm -f "$patch"' EXIT
# Files that moved count with the lines that changed.
git diff --no-ext-diff --no-color --src-prefix=a/ --dst-prefix=b/ --find-renames --find-copies "$since" -- '*.go' >"$patch"
git ls-files -z --others --exclude-standard -- '*.go' | while IFS= read -r -d '' f; do
	git diff --no-ext-diff --no-color --src-prefix=a/ --dst-prefix=b/ --no-index /dev/null "$f" >>"$patch" || true # 1: they differ
done
[ -s "$patch" ] || exit 0
"${GO:-go}" tool -modfile=tools/lint.mod golangci-lint run --config .golangci-new.yml --new-from-patch="$patch"
