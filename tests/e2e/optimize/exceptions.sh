#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Unwinding through moved code: C++ exceptions of every kind, thread
# cancellation, and backtrace(), also from signal handlers. Every movable block
# is copied and shuffled. Stripped programs too.
. "$(dirname "$0")/../lib.sh"
src=$root/tests/e2e/optimize
dir=$(mktemp -d "${TMPDIR:-/tmp}/exceptions.XXXXXX") || exit 1
at_exit 'rm -rf "$dir"'
nr_failed=0
nr_run=0

for tool in gcc g++ strip readelf; do
	if ! command -v $tool >/dev/null; then
		echo "skip: $tool is missing"
		exit 77
	fi
done
cd "$dir" || exit 1

# same WHAT PROGRAM: PROGRAM prints the original's output
same() {
	nr_run=$((nr_run + 1))
	"./$2" >got 2>&1 || fail "$1: status $?"
	cmp -s want got || {
		fail "$1: other output:"
		diff want got | sed 's/^/    /'
	}
}

# check NAME: shuffle ./NAME in several ways
check() {
	local name=$1 order

	"./$name" >want 2>&1 || { fail "$name: the original fails"; return; }
	for order in "" --lab=stress-layout=1 --lab=stress-layout=2 --lab=stress-layout=3; do
		rm -f out
		"$BUILD/morph-optimize" --all ${order:+"$order"} --report=none -o out "$name" 2>err || {
			fail "$name $order: $(cat err)"
			continue
		}
		same "$name $order" out
		strip -o stripped out 2>/dev/null || fail "$name $order: strip"
		same "$name $order stripped" stripped
		readelf -SW stripped | grep -q '\.note\.morph' ||
			fail "$name $order: the map did not outlive strip"
		# an exception that reaches noexcept ends the program
		if [ "${name#exceptions}" != "$name" ]; then
			# the outer braces keep the shell's own "Aborted" quiet
			{ (ulimit -c 0; exec ./out 1 terminate >/dev/null 2>err); } 2>/dev/null
			[ $? = 134 ] && grep -q 'terminate called' err ||
				fail "$name $order: noexcept does not terminate"
		fi
	done
}

while read -r name flags; do
	how=-Wl,--emit-relocs
	[ "${name#stock}" = "$name" ] || how=-s
	# shellcheck disable=SC2086
	g++ -std=c++14 -w $flags $how "$src/exceptions.cc" -o "exceptions-$name" ||
		{ fail "g++ $flags"; continue; }
	check "exceptions-$name"
	# shellcheck disable=SC2086
	gcc -w -fexceptions $flags $how "$src/cancel.c" -o "cancel-$name" -pthread ||
		{ fail "gcc $flags"; continue; }
	check "cancel-$name"
done <<'END'
pie -O2 -fpie -pie
nopie -O2 -fno-pie -no-pie
static -O2 -static -fno-pie -no-pie
staticpie -O2 -static-pie -fPIE
frame -O1 -fno-omit-frame-pointer
ibt -O3 -fcf-protection
size -Os -mno-accumulate-outgoing-args -mpush-args
stock-pie -O2 -fpie -pie
stock-static -O2 -static -fno-pie -no-pie
END
echo "$nr_run runs"
[ $nr_failed = 0 ]
