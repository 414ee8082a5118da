#!/bin/sh
# Installs what Springtide needs on Debian beside Go and make, and nothing that is there already.
#
#   hack/debian-deps.sh          what the tests need: test and race
#   hack/debian-deps.sh test     a PostgreSQL server, which the tests of the store start for themselves
#   hack/debian-deps.sh race     a C compiler, which `go test -race` links with
#   hack/debian-deps.sh train    PyTorch, which `make e2e` trains with (140 MB to fetch, 600 MB on disk); only when asked for
#   hack/debian-deps.sh node     QEMU and what a node's disk is made with, for `make e2e-node` (100 MB to fetch); only when asked for
#   hack/debian-deps.sh browser  Chromium, in which `make e2e-browser` opens the reports (100 MB to fetch, 350 MB on disk); only when asked for
#
# The demo needs neither: the lab and the product are plain Go. Works as root or through sudo; running it again changes
# nothing.
set -eu

say() { echo "debian-deps: $*" >&2; }

fail() {
	say "$*"
	exit 1
}

# Tools as root: directly, or through sudo.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "needs root to run: $* (no sudo here; run this script as root)"
	fi
}

# The tests look for the server's programs where Debian puts them, as this does.
have_postgres() {
	for postgres in /usr/lib/postgresql/*/bin/postgres; do
		[ -x "$postgres" ] && return 0
	done
	return 1
}

have_compiler() { command -v gcc >/dev/null && [ -e /usr/include/stdlib.h ]; }

# Debian's package would create a database cluster and run it as a service; the tests want the programs alone. The setting
# must stand before the package comes, and a file that is there already is the owner's word.
no_service() {
	conf=/etc/postgresql-common/createcluster.conf
	[ -e "$conf" ] && return 0
	say "no server is to run by itself: writing create_main_cluster = false to $conf"
	as_root mkdir -p /etc/postgresql-common
	echo "create_main_cluster = false" | as_root tee "$conf" >/dev/null
}

have_torch() { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import torch' 2>/dev/null; }

# What lab/node looks for: the machine, its disk, its kernel's modules and its shell; and what runc links with.
node_packages() {
	command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
	command -v qemu-img >/dev/null || echo qemu-utils
	[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || echo busybox-static
	[ -x /sbin/modprobe ] || echo kmod
	[ -x /sbin/mke2fs ] || echo e2fsprogs
	have_compiler || echo gcc libc6-dev
	[ -e /usr/include/seccomp.h ] || echo libseccomp-dev
}

packages=""
want() {
	case "$1" in
	test)
		if have_postgres; then
			say "PostgreSQL: found $postgres"
		else
			no_service
			packages="$packages postgresql"
		fi
		;;
	race)
		if have_compiler; then
			say "C compiler: found $(command -v gcc)"
		else
			packages="$packages gcc libc6-dev"
		fi
		;;
	train)
		if have_torch; then
			say "PyTorch: found $(/usr/bin/python3 -c 'import torch; print(torch.__version__)')"
		else
			packages="$packages python3-torch"
		fi
		;;
	node)
		missing=$(node_packages | tr '\n' ' ')
		if [ -z "$missing" ]; then
			say "virtual machine: found $(command -v qemu-system-x86_64)"
		else
			packages="$packages $missing"
		fi
		;;
	browser)
		if command -v chromium >/dev/null; then
			say "browser: found $(command -v chromium)"
		else
			packages="$packages chromium fonts-dejavu-core"
		fi
		;;
	*)
		fail "unknown part \"$1\": wants test, race, train, node or browser"
		;;
	esac
}

[ -e /etc/debian_version ] || fail "this is not a Debian; install a PostgreSQL server (for the tests) and gcc (for -race) your own way"

[ $# -gt 0 ] || set -- test race
for part in "$@"; do
	want "$part"
done

if [ -z "$packages" ]; then
	say "nothing to install"
	exit 0
fi

say "installing:$packages"
as_root apt-get update -q
# confold keeps the setting written above over the package's own file, without a question.
# shellcheck disable=SC2086 # a list of words
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-confold $packages

for part in "$@"; do
	case "$part" in
	test) have_postgres || fail "postgresql was installed, but there is no /usr/lib/postgresql/*/bin/postgres" ;;
	train) have_torch || fail "python3-torch was installed, but /usr/bin/python3 does not import torch" ;;
	node)
		missing=$(node_packages | tr '\n' ' ')
		[ -z "$missing" ] || fail "the packages were installed, but this is not found: $missing"
		;;
	browser) command -v chromium >/dev/null || fail "chromium was installed, but it is not found" ;;
	race) have_compiler || fail "gcc was installed, but it is not found" ;;
	esac
done
say "done"
