#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs long where the machine is busy
# Unwinding through copies that were put into a running process: C++ exceptions, with libgcc in a library of its own
# and in the program; exceptions through a library; pthread_cancel and pthread_exit, for which libgcc is loaded
# afterwards; backtrace() and _Unwind_Backtrace() in signal handlers; gdb. Without the page of daemon/live/lookup, the
# same programs fail.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-put.sh"
here=$root/tests/e2e/live
exceptions=$root/tests/e2e/optimize
need gcc g++ readelf
scratch live-unwinding
needs_lookup
build_put || exit 1
nr_run=0

# same WHAT COMMAND...: prints what ./want has
same() {
	nr_run=$((nr_run + 1))
	command_ends 0 "$1" timeout 100 "${@:2}"
	cmp -s want out.txt || { fail "$1: other output:"; diff want out.txt | head -5 | sed 's/^/    /'; }
}

# check FILE COMMAND...: put outputs of FILE into COMMAND. The sharpness: without the page the output is another one.
check() {
	local file=$1 address
	shift
	put_in "$file" live
	"$@" >want || { fail "$file: the original fails"; return; }
	for address in 0x10000000 0x34567000 0x70000000; do
		"$BUILD/morph-optimize" --all --lab=stress-layout=$((address % 7)) --live-at=$address --report=none \
			-o live "$file" || { fail "$file: --live-at=$address"; continue; }
		same "$file at $address" "${put[@]}" "$@"
		same "$file at $address, put in and out" "${put[@]}" PUT_TOGGLE_US=1000 "$@"
	done
	{ (ulimit -c 0; timeout 100 "${put[@]}" PUT_NO_LOOKUP=1 "$@" >got 2>/dev/null); } 2>/dev/null
	cmp -s want got && fail "$file: right without the page, so this proves nothing"
}

while read -r name flags; do
	# shellcheck disable=SC2086
	g++ -std=c++14 -w $flags "$exceptions/exceptions.cc" -o "exceptions-$name" -pthread || exit 1
	check "exceptions-$name" "./exceptions-$name"
	# libgcc of a program's own cannot unwind for libc, which loads another one
	[ $name != own-libgcc ] || continue
	# shellcheck disable=SC2086
	gcc -w -fexceptions $flags "$exceptions/cancel.c" -o "cancel-$name" -pthread || exit 1
	check "cancel-$name" "./cancel-$name"
	# shellcheck disable=SC2086
	gcc -w -fexceptions -fno-optimize-sibling-calls $flags "$here/walks.c" -o "walks-$name" -pthread || exit 1
	check "walks-$name" "./walks-$name"
done <<'END'
pie -O2 -fpie -pie
nopie -O2 -fno-pie -no-pie
own-libgcc -O2 -static-libgcc -static-libstdc++ -s
ibt -O2 -fcf-protection -Wl,--emit-relocs
END

# A library throws through a program that has no copies, and the other way round.
g++ -O2 -fPIC -shared -DLIBRARY -o libthrows.so "$here/through.cc" &&
	g++ -O2 -o through "$here/through.cc" -L. -lthrows -Wl,-rpath,"$PWD" || exit 1
check libthrows.so ./through
check through ./through

# gdb knows copies by the output, at the address where the original is loaded.
if command -v gdb >/dev/null; then
	gcc -O2 -fomit-frame-pointer -s -o deep "$here/deep.c" || exit 1
	"$BUILD/morph-optimize" --all --live-at=0x30000000 --report=none -o live deep || fail "deep"
	mkfifo ready
	put_in deep live
	"${put[@]}" ./deep >ready &
	read -r _ <ready
	base=$(awk '$NF ~ /\/deep$/ { sub("-.*", "", $1); print $1; exit }' /proc/$!/maps)
	gdb -nx -batch -p $! -ex "add-symbol-file live -o 0x$base" -ex bt >gdb.txt 2>&1
	kill $!
	wait $! 2>/dev/null
	# pause, leaf, middle, outer, main
	[ "$(grep -c '^#' gdb.txt)" -ge 6 ] && says gdb.txt '^#[5-9].*libc_start' "gdb"
fi
echo "$nr_run runs, $nr_failed failures"
[ $nr_failed = 0 ] && [ $nr_run -ge 70 ]
