#!/usr/bin/env bash
# Measures the scheduler's decision and writes the measured part of docs/benchmarks/scheduler.md. BENCH chooses rows (newClass), SIZES numbers of machines
# (10000), TIME how long each is measured, MILLION how many machines and pods that part has (0 leaves it out), QUALITY how many machines the comparison of
# placements has (0 leaves it out), OUT the page. RAW is a file with the output of earlier runs of the tests, to make the page from it alone.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-docs/benchmarks/scheduler.md}
go=${GO:-go}
raw=$(mktemp)
trap 'rm -f "$raw" "$out.new"' EXIT
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)
cpu=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)

if [[ -n ${RAW:-} ]]; then
	cat "$RAW" >"$raw"
else
	"$go" test ./scheduler/place -run '^$' -cpu 1 -bench "BenchmarkPlace/(${BENCH:-.*})\$/nodes=(${SIZES:-.*})\$" -benchtime "${TIME:-300ms}" -timeout 60m | tee "$raw" >&2
	million=${MILLION:-1000000}
	[[ $million == 0 ]] || SPRINGTIDE_MILLION=$million "$go" test ./scheduler/place -run TestMillion -v -timeout 30m | tee -a "$raw" >&2
	quality=${QUALITY:-1000}
	[[ $quality == 0 ]] || SPRINGTIDE_QUALITY=$quality "$go" test ./scheduler/place -run TestQuality -v -timeout 30m | tee -a "$raw" >&2
fi

{
	sed '/<!-- decision: measured -->/q' "$out"
	printf '\nCommit %s. %s, %s/%s, %s, one core (`-cpu 1`), load average %s when it began.\n\n' "$commit" "${cpu:-unknown processor}" "$("$go" env GOOS)" "$("$go" env GOARCH)" "$("$go" env GOVERSION)" "$load"
	awk '
	/^BenchmarkPlace\// {
		split($1, a, "/"); row = a[2]; sub(/nodes=/, "", a[3]); sub(/-[0-9]+$/, "", a[3]); size = a[3] + 0
		if (!(row in seen)) { seen[row] = 1; rows[++n] = row }
		sizes[size] = 1
		for (i = 3; i < NF; i += 2) { if ($(i + 1) == "cpu-ns/pod") ns[row, size] = $i; if ($(i + 1) == "allocs/op") al[row, size] = $i }
	}
	function show(v) { if (v == "") return ""; if (v >= 1e6) return sprintf("%.2f ms", v / 1e6); if (v >= 1e4) return sprintf("%.0f µs", v / 1e3); if (v >= 1e3) return sprintf("%.1f µs", v / 1e3); return sprintf("%.0f ns", v) }
	END {
		m = split("1000 10000 30000 100000", order, " ")
		printf "| row |"; for (k = 1; k <= m; k++) if (order[k] in sizes) printf " %d machines |", order[k]; print " allocations |"
		printf "|---|"; for (k = 1; k <= m; k++) if (order[k] in sizes) printf "---|"; print "---|"
		for (r = 1; r <= n; r++) {
			printf "| %s |", rows[r]; last = ""
			for (k = 1; k <= m; k++) if (order[k] in sizes) { printf " %s |", show(ns[rows[r], order[k]]); if (al[rows[r], order[k]] != "") last = al[rows[r], order[k]] }
			printf " %s |\n", last
		}
	}' "$raw"
	printf '\n'
	sed -n 's/^ *million_test.go:[0-9]*: /- /p' "$raw"
	printf '\nThe same pods on the same machines, by the index, by looking at every machine for every pod, and by the best of 51 machines that fit (`TestQuality`):\n\n'
	sed -n 's/^ *quality_test.go:[0-9]*: //p' "$raw"
	printf '\n'
	sed -n '/<!-- decision: end -->/,$p' "$out"
} >"$out.new"
mv "$out.new" "$out"
