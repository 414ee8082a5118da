#!/usr/bin/env bash
# Runs a command that may take long: says what runs, how far it is and about how long it will take, and shows the output only when it fails.
# Of `go build` it counts the packages that are compiled, of `go mod download` the modules that are fetched; of the rest, the time.
set -euo pipefail
what=$1
shift
log=$(mktemp) plan=$(mktemp)
pid= counter= ticker=
finish() {
	for p in $pid $counter $ticker; do kill "$p" 2>/dev/null || true; done
	rm -f "$log" "$plan"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
start=$SECONDS

# count_packages writes how many packages the build has to compile: a package of the build cache is not stale.
count_packages() { "$1" list -deps -f '{{if .Stale}}x{{end}}' "${@: -1}" 2>/dev/null | grep -c x >"$plan" || true; }
# count_modules writes how many modules of go.mod are not in the module cache; capitals are escaped there.
count_modules() {
	local cache module version n=0
	cache=$("$1" env GOMODCACHE)/cache/download
	while read -r module version _; do
		module=$(sed 's/[A-Z]/!\L&/g' <<<"$module")
		[ -e "$cache/$module/@v/$version.zip" ] || n=$((n + 1))
	done < <(awk '$1 == "require" && $2 != "(" {print $2, $3} /^\t/ {print $1, $2}' go.mod)
	echo "$n" >"$plan"
}

unit=
case "${2:-}" in
build)
	unit=packages done_line='^[^# ]*$'
	count_packages "$@" &
	counter=$!
	set -- "$1" "$2" -v "${@:3}"
	;;
mod)
	unit=modules done_line='\.zip: 200'
	count_modules "$1"
	set -- "$1" "$2" "$3" -x "${@:4}"
	;;
esac

# clock prints seconds as a reader would say them.
clock() { if [ "$1" -ge 90 ]; then echo "$((($1 + 30) / 60)) min"; else echo "$1 s"; fi; }
# state prints how far it is: an estimate needs some packages to go by, and all packages count alike in it.
state() {
	[ -n "$unit" ] || return 0
	local all done elapsed=$((SECONDS - start))
	done=$(grep -c "$done_line" "$log" || true)
	all=$(cat "$plan")
	[ "$done" -gt 0 ] || return 0
	if [ -z "$all" ] || [ "$all" -lt "$done" ]; then
		printf ', %d %s done' "$done" "$unit"
	elif [ "$done" -lt 20 ] || [ "$elapsed" -lt 5 ]; then
		printf ', %d of %d %s' "$done" "$all" "$unit"
	else
		printf ', %d of %d %s, about %s left' "$done" "$all" "$unit" "$(clock $((elapsed * (all - done) / done)))"
	fi
}

"$@" >"$log" 2>&1 &
pid=$!
if [ -t 1 ]; then
	while kill -0 "$pid" 2>/dev/null; do
		printf '\r\033[K  %s%s  %ds' "${what%% (*}" "$(state)" $((SECONDS - start))
		sleep 1
	done
	printf '\r\033[K'
else
	# Without a terminal, a line every half a minute. A sleep that outlives this script holds no pipe that a reader waits for.
	(while sleep "${PROGRESS_EVERY:-30}" >/dev/null 2>&1; do echo "  ${what%% (*}: $((SECONDS - start))s$(state)"; done) &
	ticker=$!
fi
status=0
wait "$pid" || status=$?
pid=
if [ "$status" -ne 0 ]; then
	echo "  $what: failed after $((SECONDS - start))s"
	if [ "$unit" = packages ]; then grep -v "$done_line" "$log" || true; else cat "$log"; fi
	exit "$status"
fi
printf '  %-90s %4ds\n' "$what" $((SECONDS - start))
