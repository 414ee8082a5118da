#!/usr/bin/env bash
# Measures what docs/benchmarks/shift.md and its sister pages (shift-*.md) show, and writes it between their marks. The text around the marks is written by
# hand: read it over after each run. PARTS picks some of: week fleets faults plans recalls model. SCENARIO and POLICIES play another week (on another PAGE that
# has the marks, then), SEEDS other seeds (1..10000), RECALL other benchmarks of recalls.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -n ${PAGE:-} ]]; then pages=("$PAGE"); else pages=(docs/benchmarks/shift*.md); fi
bin=${BIN:-bin}
parts=" ${PARTS:-week fleets faults plans recalls model} "
scenario=${SCENARIO:-sim/scenario/examples/week.yaml}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

cpu=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)
machine="$(getconf _NPROCESSORS_ONLN) cores${cpu:+ ($cpu)}, $(go env GOOS)/$(go env GOARCH), $(go env GOVERSION)"
load() { cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown; }
since() { echo "$((($(date +%s) - $1) / 60)) min $((($(date +%s) - $1) % 60)) s"; }
wanted() { [[ $parts == *" $1 "* ]]; }

# put NAME writes its input between the marks of that name, on the one page that has them.
put() {
	local begin="<!-- $1: measured -->" end="<!-- $1: end -->" page
	cat >"$new/part"
	page=$(grep -lxF -e "$begin" "${pages[@]}") && [[ $page != *$'\n'* ]] && grep -qxF -e "$end" "$page" ||
		{ echo "not exactly one of ${pages[*]} has the marks $begin and $end" >&2; exit 1; }
	awk -v begin="$begin" -v end="$end" -v part="$new/part" '
		$0 == end { off = 0 }
		!off
		$0 == begin { off = 1; while ((getline line < part) > 0) print line }' "$page" >"$new/page"
	cat "$new/page" >"$page"
}

# run NAME COMMAND leaves what a command prints in a file, and says how it was measured in another.
run() {
	local started at
	started=$(date +%s) at=$(load)
	eval "${2/#springtide/$bin/springtide} $3" >"$new/$1.txt" 2>"$new/$1.err" || { cat "$new/$1.err" "$new/$1.txt" >&2; exit 1; }
	echo "Command: \`$2\`. It took $(since "$started") on $machine, at a load average of $at." >"$new/$1.how"
}

# brief keeps each policy at the target that it comes with.
brief() {
	echo "| policy | lender | target | SLO minutes | SLO minutes at HPA's cost | harm | of HPA 60 % | of oracle | mean util | late | lost core-hours | moves | terms broken |"
	echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
	awk -F' *[|] *' '
		NR == FNR { if (NF == 7) at[$2] = $3; next }
		NF > 10 && ($4 ~ /\*$/ || $4 == "-") {
			sub(/ \*$/, "", $4)
			print "| " $2 " | " $3 " | " $4 " | " $5 " | " ($3 == "none" || $3 == "oracle" ? at[$2] : "") " | " $8 " | " $10 " | " $12 " | " $13 " | " $15 " | " $16 " | " $17 " | " $18 " |"
		}' "$1" "$1"
}

if wanted week; then
	run week "springtide simulate --scenario $scenario --policies ${POLICIES:-all}" "--out $bin/week.json --html $bin/week.html --markdown $new/week.md"
	{ head -n1 "$new/week.txt" && echo && cat "$new/week.how" && echo && brief "$new/week.md"; } | put brief
	# The first table has a row for each policy at each target; curves at one cost follow it.
	awk 'NR < 3 || !/^[|] (springtide|oracle)/ { print } /^$/ { exit }' "$new/week.md" | sed '/^$/d' | put scalers
	awk 'NR < 3 || rest || /^[|] (springtide|oracle)/ || /^$/ { print } /^$/ { rest = 1 }' "$new/week.md" | put targets
fi
if wanted fleets; then
	# Fleets that nothing was tuned on.
	for f in other-week small-services; do
		run "$f" "springtide simulate --scenario sim/scenario/examples/$f.yaml --policies springtide+springtide,hpa+none,oracle" \
			"--out $bin/$f.json --markdown $new/$f.md"
	done
	{
		for f in other-week small-services; do
			echo "$(head -n1 "$new/$f.txt"). $(cat "$new/$f.how")"
			echo
		done
		echo "| scenario | policy | SLO minutes | harm | late | terms broken | online core-hours | of HPA 60 % | offline core-hours | of oracle | mean util | moves | scales |"
		echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
		for f in other-week small-services; do
			awk -F' *[|] *' -v name="$f" 'NF > 10 && ($4 ~ /\*$/ || $4 == "-") {
				print "| " name " | " $2 " | " $5 " | " $8 " | " $15 " | " $18 " | " $9 " | " $10 " | " $11 " | " $12 " | " $13 " | " $17 " | " $19 " |"
			}' "$new/$f.md"
		done
	} | put fleets
fi
if wanted faults; then
	run faults "springtide simulate --scenario sim/scenario/examples/faults.yaml --seeds ${SEEDS:-1..10000}" "--out $bin/faults.json"
	{ cat "$new/faults.how" && echo "No seed broke an invariant."; } | put faults
fi
if wanted plans; then
	run plans "go test -run '^\$' -bench BenchmarkMake -benchtime 3x ./planner" ""
	{
		cat "$new/plans.how"
		echo
		echo "| services | processor time of a plan | growth since the size before | heap |"
		echo "|---|---|---|---|"
		awk '/^Benchmark/ {
			for (i = 3; i < NF; i += 2) m[$(i + 1)] = $i
			sub(/.*services=/, "", $1); sub(/-[0-9]+$/, "", $1)
			print "| " $1 " | " m["cpu-ms"] " ms | " m["growth"] " | " m["heap-MB"] " MB |"
		}' "$new/plans.txt"
	} | put plans
fi
if wanted recalls; then
	run recalls "go test -run '^\$' -bench '${RECALL:-BenchmarkRecall}' -benchtime 1x -timeout 2h ./sim" ""
	{
		cat "$new/recalls.how"
		echo
		echo "| machines | lent | called | home | minutes from the first recall until all are home | at Katalyst's pace at least | home while pods waited | return to first bound pod, p50, p99 | longest plan | API objects written |"
		echo "|---|---|---|---|---|---|---|---|---|---|"
		awk '/^Benchmark/ {
			delete m
			for (i = 3; i < NF; i += 2) m[$(i + 1)] = $i
			sub(/.*nodes=/, "", $1); sub(/-[0-9]+$/, "", $1)
			bound = m["awaited"] > 0 ? m["bound-p50-s"] " s, " m["bound-p99-s"] " s" : "-"
			printf "| %s | %d | %d | %d | %s | %.0f | %d | %s | %s ms | %d |\n", $1, m["lent"], m["called"], m["home"], m["home-min"], m["called"] / 6, m["awaited"], bound, m["plan-ms"], m["writes"]
		}' "$new/recalls.txt"
	} | put recalls
fi
if wanted model; then
	run model "FULL=1 go test -count=1 -v -timeout 2h -run TestProtocol ./sim/check" ""
	{
		cat "$new/model.how"
		echo
		echo "| bounds | states | transitions | depth |"
		echo "|---|---|---|---|"
		awk '/^=== RUN .*\// { bounds = substr($3, index($3, "/") + 1) }
		/ states, [0-9]+ transitions, depth / {
			sub(/^.*_test\.go:[0-9]+: /, "")
			split($0, n, / states, | transitions, depth |, /)
			printf "| %s%s | %d | %d | %d |\n", bounds, (/, cut off$/ ? " (cut off)" : ""), n[1], n[2], n[3]
		}' "$new/model.txt"
	} | put model
fi
