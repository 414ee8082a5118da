#!/usr/bin/env bash
# Runs every benchmark of the project, package by package, and writes docs/benchmarks/PACKAGE.md: what is measured, the command, the
# machine, and the lines as `go test` printed them, so that two results can be given to benchstat. BENCH=REGEXP picks packages.
set -euo pipefail
cd "$(dirname "$0")/.."
out=docs/benchmarks
mkdir -p "$out"

# A cycle over a large fleet takes long, so it is counted in runs; the rest in time. Together they take minutes.
flags() {
	case $1 in
	./internal/loop) echo "-benchtime 60x" ;;
	*) echo "-benchtime 1s" ;;
	esac
}

machine() {
	local cpu memory
	cpu=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)
	memory=$(awk '/^MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo 2>/dev/null || true)
	echo "$(getconf _NPROCESSORS_ONLN) cores${cpu:+ ($cpu)}, ${memory:-memory unknown}, $(go env GOOS)/$(go env GOARCH), $(go env GOVERSION)"
}

# The comments of the benchmarks say what they measure.
comments() {
	awk '
		/^\/\// { text = text (text == "" ? "" : " ") substr($0, 4); next }
		/^func Benchmark/ {
			name = $2; sub(/\(.*/, "", name)
			sub("^" name " ", "", text)
			print "- `" name "`" (text == "" ? "" : " " text)
		}
		{ text = "" }' "$1"/*_test.go
}

grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n1 dirname | sort -u | while read -r pkg; do
	[[ $pkg =~ ${BENCH:-.} ]] || continue
	name=$(tr / - <<<"${pkg#./}")
	[[ $name != forecast ]] || name=forecast-speed # forecast.md is how good forecasts are: hack/bench-forecast.sh
	[[ $name != agent-host ]] || name=agent
	command="go test -run '^\$' -bench . -benchmem $(flags "$pkg") $pkg"
	echo "  $pkg"
	load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)
	if ! lines=$(eval "timeout 600 $command" 2>&1); then
		echo "$lines" >&2
		exit 1
	fi
	{
		echo "# ${pkg#./}"
		echo
		echo "Written by \`make bench\`."
		echo
		comments "$pkg"
		echo
		[[ $name != agent ]] || printf 'What was measured on a real node: [agent-node.md](agent-node.md).\n\n'
		echo "Command: \`$command\`"
		echo
		echo "Machine: $(machine). Load average before the run: $load."
		echo
		echo '```'
		grep -E '^Benchmark' <<<"$lines"
		echo '```'
	} >"$out/$name.md.new"
	mv "$out/$name.md.new" "$out/$name.md"
done
