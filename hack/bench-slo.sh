#!/usr/bin/env bash
# Measures what docs/benchmarks/slo.md shows, and writes it between its marks; the text around them is written by hand. PARTS picks some of:
# wall cost objectives release. SEEDS is how many seeds the simulator plays. WALL=FILE keeps what the reality check measured, or prints the
# table of a file that is there.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-bin} go=${GO:-go} page=docs/benchmarks/slo.md
parts=" ${PARTS:-wall cost objectives release} " seeds=${SEEDS:-2}
mkdir -p "$bin"
"$go" build -o "$bin/bench-slo" ./bench/slo
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

cpu=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)
machine="$(getconf _NPROCESSORS_ONLN) cores${cpu:+ ($cpu)}, $("$go" env GOOS)/$("$go" env GOARCH), $("$go" env GOVERSION)"
load() { cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown; }

# put NAME writes its input between the marks of that name.
put() {
	local begin="<!-- $1: measured -->" end="<!-- $1: end -->"
	cat >"$new/part"
	grep -qxF -e "$begin" "$page" && grep -qxF -e "$end" "$page" || { echo "$page lacks the marks $begin and $end" >&2; exit 1; }
	awk -v begin="$begin" -v end="$end" -v part="$new/part" '
		$0 == end { off = 0 }
		!off
		$0 == begin { off = 1; while ((getline line < part) > 0) print line }' "$page" >"$new/page"
	cat "$new/page" >"$page"
}

# how says how a part was measured.
how() { printf 'Commit %s, `%s`, %d min on %s, at a load average of %s.\n\n' "$(git rev-parse --short HEAD)" "$1" "$((($(date +%s) - $2) / 60))" "$machine" "$3"; }

for part in $parts; do
	started=$(date +%s) at=$(load)
	case $part in
	wall)
		file=${WALL:-$bin/bench-slo-wall.json}
		if [[ -z ${WALL:-} || ! -f $file ]]; then
			SPRINGTIDE_BENCH_SLO=$(realpath -m "$file") "$go" test -count=1 -v -timeout 3h -run 'TestCapacityByTheWall$' ./bench/slo >&2
		fi
		"$bin/bench-slo" -part wall -in "$file" >"$new/table"
		command="PARTS=wall make bench-slo"
		;;
	cost | objectives | release)
		"$bin/bench-slo" -part "$part" -seeds "$seeds" >"$new/table"
		command="PARTS=$part SEEDS=$seeds make bench-slo"
		;;
	*)
		echo "PARTS: there is no part $part: write wall, cost, objectives or release" >&2
		exit 2
		;;
	esac
	{ how "$command" "$started" "$at" && cat "$new/table"; } | put "$part"
done
