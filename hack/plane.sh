#!/usr/bin/env bash
# Tests on a real API server: for each package with files of build tag plane, starts the lab's control plane on loopback, runs every TestPlane
# of the package against it, and ends it by its process id, however that comes. A package has a control plane of its own: the nodes that
# another one left would count in what a scheduler decides. Arguments go to go test: hack/plane.sh -v -run TestPlaneWorkloads
# PACKAGES restricts it: PACKAGES=./scheduler/host/command hack/plane.sh
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-bin}

dir=
lab=
finish() {
	if [ -n "$lab" ] && kill "$lab" 2>/dev/null; then
		wait "$lab" 2>/dev/null || true
	fi
	lab=
	[ -z "$dir" ] || rm -rf "$dir"
	dir=
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start begins a control plane and sets kubeconfig.
start() {
	local begin=$SECONDS
	dir=$(mktemp -d)
	touch "$dir/said"
	# Tolerations by Gt and Lt are an alpha feature of the API server; the bundled scheduler obeys them wherever they are accepted.
	local gates=kube-apiserver=--feature-gates=TaintTolerationComparisonOperators=true
	# The kernel ends the lab should this script be killed in a way that it cannot answer to; the lab's own children end with the lab.
	setpriv --pdeathsig TERM "$bin/springtide-lab" up --dir "$dir" --kwok "$bin/kwok" --component-arg "$gates" >"$dir/said" 2>"$dir/log" &
	lab=$!
	# A start takes seconds; two minutes are for a machine with much else to do.
	until kubeconfig=$(sed -n 's/^export KUBECONFIG=//p' "$dir/said") && [ -n "$kubeconfig" ]; do
		if ! kill -0 "$lab" 2>/dev/null || [ $((SECONDS - begin)) -ge 120 ]; then
			echo "  no control plane after $((SECONDS - begin))s:"
			cat "$dir/log"
			exit 1
		fi
		sleep 0.2
	done
	echo "  control plane ready after $((SECONDS - begin))s: etcd, API server, controller-manager, scheduler, KWOK; now the tests of $1"
}

status=0
for package in ${PACKAGES:-$(grep -rl --include='*_test.go' '^//go:build plane$' . | xargs -n1 dirname | sort -u)}; do
	start "$package"
	# -count=1: a cached result would be of a control plane that is no more.
	SPRINGTIDE_TEST_KUBECONFIG=$kubeconfig "${GO:-go}" test ${TEST_FLAGS:+"$TEST_FLAGS"} -tags plane -count=1 -timeout 10m -run '^TestPlane' "$@" "$package" || status=1
	finish
done
exit "$status"
