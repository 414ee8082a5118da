#!/usr/bin/env bash
# Lints and tests what changed since the main branch, and what imports it directly, within BUDGET seconds (80, so that all is over within 90).
# What it leaves out, it names. HEAVY are packages that build Kubernetes; BASE is what to compare with.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} budget=${BUDGET:-80} heavy=${HEAVY:-/(cmd/springtide-lab|hpa/upstreamtest|e2e)(/|$)}
module=$("$go" list -m)
left() { echo $((budget - SECONDS)); }

base=${BASE:-}
if [ -z "$base" ]; then
	base=HEAD
	for ref in origin/main main; do
		if git rev-parse -q --verify "$ref" >/dev/null; then base=$(git merge-base HEAD "$ref") && break; fi
	done
fi
mapfile -t files < <({ git diff --name-only "$base" && git ls-files --others --exclude-standard; } | sort -u)
if [ ${#files[@]} -eq 0 ]; then
	echo "  nothing changed since $(git describe --always "$base")"
	exit 0
fi

# A file that is no Go file belongs to the package of the nearest folder that has one: testdata, and what is embedded.
changed=() skipped=()
for f in "${files[@]}"; do
	d=$(dirname "$f")
	while [ "$d" != . ] && { [[ $d =~ (^|/)testdata(/|$) ]] || ! compgen -G "$d/*.go" >/dev/null; }; do d=$(dirname "$d"); done
	if [ "$d" = . ]; then skipped+=("$f (belongs to no package: make verify)"); else changed+=("$module/$d"); fi
done
mapfile -t changed < <(printf '%s\n' "${changed[@]}" | sed '/^$/d' | sort -u)

status=0
gofiles=()
for f in "${files[@]}"; do [[ $f == *.go && -e $f && $f != */testdata/* ]] && gofiles+=("$f"); done
if [ ${#gofiles[@]} -gt 0 ]; then
	unformatted=$(gofmt -l "${gofiles[@]}")
	if [ -n "$unformatted" ]; then
		printf '  gofmt these files:\n%s\n' "$unformatted"
		status=1
	fi
fi
if [ ${#changed[@]} -gt 0 ]; then
	# Importers by code and by tests, once each, and none that changed itself.
	mapfile -t importers < <("$go" list -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .TestImports}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$p}} {{.}}{{"\n"}}{{end}}' ./... |
		awk 'NR == FNR {c[$1]; next} ($2 in c) && !($1 in c) && !seen[$1]++ {print $1}' <(printf '%s\n' "${changed[@]}") -)
	run=()
	for p in "${changed[@]}" "${importers[@]}"; do
		if [[ $p =~ $heavy ]]; then skipped+=("${p#"$module/"} (builds Kubernetes: make unit)"); elif [ -n "$p" ]; then run+=("$p"); fi
	done
	if [ ${#run[@]} -gt 0 ]; then
		log=$(mktemp)
		trap 'rm -f "$log"' EXIT
		echo "  testing ${#changed[@]} changed packages and ${#importers[@]} that import them"
		rc=0
		timeout "$(left)" "$go" test ${TEST_FLAGS:+"$TEST_FLAGS"} -short -p 2 "${run[@]}" >"$log" 2>&1 || rc=$?
		grep -vE '^(\?|ok) ' "$log" || true
		[ "$rc" -eq 0 ] || [ "$rc" -eq 124 ] || status=1
		for p in "${run[@]}"; do
			grep -qE "^(ok|FAIL|\?|---|) *	$p([	 ]|$)" "$log" || skipped+=("${p#"$module/"} (no result in time: go test -short ./${p#"$module/"})")
		done
		! grep -q '^FAIL' "$log" || status=1
		if [ "$(left)" -gt 10 ]; then
			rc=0
			dirs=()
			for p in "${changed[@]}" "${importers[@]}"; do [[ ! $p =~ $heavy ]] && [ -d "${p#"$module/"}" ] && dirs+=("./${p#"$module/"}"); done
			# All of vet is part of it.
			timeout "$(left)" "$go" tool -modfile=tools/lint.mod golangci-lint run "${dirs[@]}" || rc=$?
			if [ "$rc" -eq 124 ]; then skipped+=("golangci-lint (no time left: make lint; it is built at its first run)"); elif [ "$rc" -ne 0 ]; then status=1; fi
			# It needs no types, so it takes seconds.
			if [ -x hack/lint-new.sh ] && [ "$(left)" -gt 5 ]; then GO=$go timeout "$(left)" hack/lint-new.sh || status=1; fi
		else
			skipped+=("golangci-lint (no time left: make lint)")
		fi
	fi
fi
echo "  skipped, and run by make test: tests that -short leaves out, the race detector, the real API server (make plane), the lab run (make e2e-short)"
for s in "${skipped[@]}"; do echo "  skipped: $s"; done
[ "$status" -eq 0 ] && echo "  quick: nothing failed after ${SECONDS}s, ${#skipped[@]} parts skipped" || echo "  quick: failed after ${SECONDS}s"
exit "$status"
