#!/usr/bin/env bash
# Measures forecasts next to the peers' and writes docs/benchmarks/forecast.md, forecast-hourly.md and forecast-m4.md. TRACES names a folder of traces (NAME.csv.gz with the columns
# ts,value; those that are shipped when unset), M4 one with the hourly set of the M4 competition (left out when unset; its test part is read
# with M4_TEST=1 alone, and origins within the training part else), OUT the first page: the others stand next to it.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-docs/benchmarks/forecast.md}
traces=${TRACES:-lab/traces/data}
tables=$(mktemp)
trap 'rm -f "$tables" "$tables".* "$out.new"' EXIT

flags=(--peers --traces "$traces")
if [[ -n ${M4:-} ]]; then
	flags+=(--m4 "$M4")
	[[ -z ${M4_TEST:-} ]] || flags+=(--m4-test)
fi
load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)
cpu=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)
go run ./bench/forecast "${flags[@]}" --out "$tables"
awk -v to="$tables" 'BEGIN { part = "5min" } /^## / { part = /M4/ ? "m4" : /at 1 h/ ? "hourly" : "5min" } { print > (to "." part) }' "$tables"

{
	cat <<'EOF_HEAD'
# Forecasts

Tables: [traces at 5 minutes](#traces-at-5-min) below, [traces at 1 hour](forecast-hourly.md), [M4 hourly](forecast-m4.md).

Written by `make bench-forecast`, which takes a folder of traces in `TRACES` (those under `lab/traces` when unset) and the hourly set of the M4
competition in `M4`. `springtide backtest` measures the same on series of your own.

Every forecast is made from what came before its origin alone (`TestNoForecasterLooksAhead` replaces all that came after and wants the same
digits), and scored by what came after it.

- **WQL** is twice the quantile losses over the load, the mean of the quantiles .5, .9, .95 and .99: *pooled* over all steps in the traces' own
  units, so that the largest trace rules; *scaled*, with every history brought to a mean of one; and as the *mean* of the forecasts' own. The four
  columns after it are the pooled one at each quantile. Less is better.
- **better on** counts the series on which our WQL over all origins is the smaller one.
- **cover** is the share of values at or below the path of a quantile; of a calibrated forecast, the quantile.
- **sMAPE** (0 to 200) and **MASE** are of the median, **MSIS** of the 95 % interval; MASE and MSIS are scaled by the error of repeating the last
  day within the history. All three are means over the forecasts; MASE's median stands next to it, since traces with an anomaly rule the mean.
- **ms** is wall time for one forecast, learning included, with all cores busy.

The peers are written again from their sources (`forecast/peer`), with the parameters that they ship. Those which give a number alone stand there
twice: as shipped, with it at every quantile, and `+residuals`, with the quantiles of their own errors on origins within the history. `last-value`
is what a reactive autoscaler assumes. Crane finds no day or week in some series and then stays reactive, which its row counts as the last value.
PHPA asks its models for one step; here they go on to the horizon.

The last constants of the engine (margins, caps, how outages are set aside) were chosen with these traces in view: its figures on them are a little
optimistic.

EOF_HEAD
	echo "Machine: $(getconf _NPROCESSORS_ONLN) cores${cpu:+ ($cpu)}, $(go env GOOS)/$(go env GOARCH), $(go env GOVERSION). Load average before the run: $load."
	echo
	if [[ -n ${TRACES:-} ]]; then echo "Traces: a folder of its own, named by \`TRACES\`."; else echo "Traces: those that are shipped, under \`lab/traces\`."; fi
	echo
	cat "$tables.5min"
} >"$out.new"
mv "$out.new" "$out"

# rest NAME TITLE writes a page of its own, where something was measured for it.
rest() {
	[[ -s $tables.$1 ]] || return 0
	printf '# Forecasts: %s\n\nWritten by `make bench-forecast`. What the columns mean, and the machine, are in [forecast](forecast.md).\n\n' "$2" >"$out.new"
	cat "$tables.$1" >>"$out.new"
	mv "$out.new" "${out%.md}-$1.md"
}
rest hourly "traces at 1 hour"
rest m4 "M4 hourly"
