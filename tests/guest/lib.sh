# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the guest's tests share. Sourced by them; they run in a directory of their own, as root,
# with the module not loaded. GUEST is where the compiled programs are, LONG is 1 in the long run.
set -u
GUEST=${GUEST:-$BUILD/guest}
KO=$BUILD/kmod/$KERNEL/morphmon.ko
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export GUEST KO
LONG=${LONG:-0}
nr_failed=0

fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

# load PARAMETER...: the module; without it no test has any sense
load() {
	insmod "$KO" "$@" || { fail "insmod $*"; exit 1; }
	[ -c /dev/morphmon ] || { fail "no /dev/morphmon"; exit 1; }
}

# What a check forked may still be on its way out, with the descriptors that it inherited.
unload() {
	for _ in {1..100}; do
		rmmod morphmon 2>rmmod.txt && break
		sleep 0.1
	done
	! grep -q '^morphmon' /proc/modules || fail "rmmod: $(cat rmmod.txt)"
	[ ! -e /dev/morphmon ] || fail "/dev/morphmon stays"
}

# check PROGRAM ARG...: one of the compiled ones, which says itself what failed
check() {
	"$GUEST/$1" "${@:2}" || { fail "$*: exit $?"; }
}

# fails MESSAGE COMMAND...: it must, and say so
fails() {
	local message=$1
	shift
	if "$@" >out 2>&1; then
		fail "$* did not fail"
	else
		grep -q -e "$message" out || fail "$*: $(head -n 1 out)"
	fi
}

finish() {
	exit $((nr_failed > 0))
}
