# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the guest's tests; sourced. Tests run in directories of their own, as root, with the
# module not loaded. GUEST is the directory of the compiled programs; LONG is 1 in the long run.
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

# load PARAMETER...: load the module; without the module, the test ends
load() {
	insmod "$KO" "$@" || { fail "insmod $*"; exit 1; }
	[ -c /dev/morphmon ] || { fail "no /dev/morphmon"; exit 1; }
}

# A child of an earlier check may still be exiting, with inherited descriptors open.
unload() {
	for _ in {1..100}; do
		rmmod morphmon 2>rmmod.txt && break
		sleep 0.1
	done
	! grep -q '^morphmon' /proc/modules || fail "rmmod: $(cat rmmod.txt)"
	[ ! -e /dev/morphmon ] || fail "/dev/morphmon stays"
}

# check PROGRAM ARG...: run a compiled program, which prints its own failures
check() {
	"$GUEST/$1" "${@:2}" || { fail "$*: exit $?"; }
}

# fails MESSAGE COMMAND...: the command must fail with this message
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
