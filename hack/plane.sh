#!/usr/bin/env bash
# Tests on a real API server: starts the lab's control plane on loopback, runs every TestPlane of the files with build tag plane against it,
# and ends it by its process id, however that comes. Arguments go to go test: hack/plane.sh -v -run TestPlaneWorkloads
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-bin}

dir=$(mktemp -d)
lab=
finish() {
	if [ -n "$lab" ] && kill "$lab" 2>/dev/null; then
		wait "$lab" 2>/dev/null || true
		echo "  control plane ended"
	fi
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The kernel ends the lab should this script be killed in a way that it cannot answer to; the lab's own children end with the lab.
start=$SECONDS
touch "$dir/said"
setpriv --pdeathsig TERM "$bin/springtide-lab" up --dir "$dir" --kwok "$bin/kwok" >"$dir/said" 2>"$dir/log" &
lab=$!
# A start takes seconds; two minutes are for a machine with much else to do.
until kubeconfig=$(sed -n 's/^export KUBECONFIG=//p' "$dir/said") && [ -n "$kubeconfig" ]; do
	if ! kill -0 "$lab" 2>/dev/null || [ $((SECONDS - start)) -ge 120 ]; then
		echo "  no control plane after $((SECONDS - start))s:"
		cat "$dir/log"
		exit 1
	fi
	sleep 0.2
done
packages=$(grep -rl --include='*_test.go' '^//go:build plane$' . | xargs -n1 dirname | sort -u)
echo "  control plane ready after $((SECONDS - start))s: etcd, API server, controller-manager, scheduler, KWOK; now the tests of" $packages
# -count=1: a cached result would be of a control plane that is no more.
SPRINGTIDE_TEST_KUBECONFIG=$kubeconfig "${GO:-go}" test -tags plane -p 1 -count=1 -timeout 10m -run '^TestPlane' "$@" $packages
