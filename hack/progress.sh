#!/usr/bin/env bash
# Runs a command that may take long: says what runs, counts the time on a terminal, and shows the output only when it fails.
set -euo pipefail
what=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
start=$SECONDS
"$@" >"$log" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; rm -f "$log"' INT TERM
if [ -t 1 ]; then
	while kill -0 "$pid" 2>/dev/null; do
		printf '\r  %-90s %4ds' "$what" $((SECONDS - start))
		sleep 1
	done
	printf '\r'
else
	# Without a terminal, a line every half a minute says that it is still at work.
	(while sleep 30; do echo "  $what: still at work after $((SECONDS - start))s"; done) &
	ticker=$!
fi
status=0
wait "$pid" || status=$?
[ -n "${ticker:-}" ] && kill "$ticker" 2>/dev/null
if [ "$status" -ne 0 ]; then
	echo "  $what: failed after $((SECONDS - start))s"
	cat "$log"
	exit "$status"
fi
printf '  %-90s %4ds\n' "$what" $((SECONDS - start))
