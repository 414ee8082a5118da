#!/usr/bin/env bash
# Plays the week of 1,000 machines under every policy, seeds of faults, plans of growing fleets and recalls, and writes
# docs/benchmarks/shift.md. What its section "What it says" tells of the figures is kept: whoever measures anew reads it over.
# SCENARIO and POLICIES play another week, SEEDS other seeds (1..10000), RECALL other benchmarks of recalls.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/benchmarks/shift.md
bin=${BIN:-bin}
scenario=${SCENARIO:-sim/scenario/examples/week.yaml}
policies=${POLICIES:-all}
seeds=${SEEDS:-1..10000}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

cpu=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)
machine="$(getconf _NPROCESSORS_ONLN) cores${cpu:+ ($cpu)}, $(go env GOOS)/$(go env GOARCH), $(go env GOVERSION)"
since() { echo "$((($(date +%s) - $1) / 60)) min $((($(date +%s) - $1) % 60)) s"; }

week="springtide simulate --scenario $scenario --policies $policies"
started=$(date +%s)
"$bin/$(cut -d' ' -f1 <<<"$week")" ${week#springtide } --out "$bin/week.json" --html "$bin/week.html" --markdown "$new/week.md" >"$new/week.txt"
week_took=$(since "$started")

faults="springtide simulate --scenario sim/scenario/examples/faults.yaml --seeds $seeds"
started=$(date +%s)
"$bin/springtide" ${faults#springtide } --out "$bin/faults.json" >"$new/faults.txt" 2>"$new/faults.err" || { cat "$new/faults.err" >&2; exit 1; }
faults_took=$(since "$started")

plans="go test -run '^\$' -bench 'BenchmarkMake' -benchtime 3x ./planner"
recalls="go test -run '^\$' -bench '${RECALL:-BenchmarkRecall}' -benchtime 1x -timeout 2h ./sim"
eval "$plans" | grep '^Benchmark' >"$new/plans.txt"
eval "$recalls" | grep '^Benchmark' >"$new/recalls.txt"

{
	echo "# Shifting capacity, simulated"
	echo
	echo "Written by \`make bench-shift\` on $machine. How each policy is played and what the columns mean is in [simulator.md](../simulator.md);"
	echo "calm and bursty are minutes a service-week, and an asterisk marks the target that a policy comes with."
	echo
	echo "## $(head -n1 "$new/week.txt")"
	echo
	echo "Command: \`$week\`. Wall time: $week_took."
	echo
	cat "$new/week.md"
	echo "## Faults"
	echo
	echo "Command: \`$faults\`. Wall time: $faults_took. No seed broke an invariant."
	echo
	echo "## Plans of growing fleets"
	echo
	echo "Command: \`$plans\`. growth is the exponent by which the time grows from one size to the next: 1 on a log-log plot is a straight line of that slope."
	echo
	echo '```'
	cat "$new/plans.txt"
	echo '```'
	echo
	echo "## Recalls"
	echo
	echo "A third of a fleet, called at once for a flood that nobody foresaw. Command: \`$recalls\`."
	echo
	echo '```'
	cat "$new/recalls.txt"
	echo '```'
	echo
	awk '/^(## )?What it says/ {on = 1} on' "$page" 2>/dev/null || true
} >"$new/page.md"
mv "$new/page.md" "$page"
