#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that look for functions in their stack, by the function that encloses a return address (C, C++ with a
# personality routine of its own, Rust): outputs find the same, and Rust's backtraces are the same text. Where a program
# asks in a way for which there are answers, only the functions that ask stay.
. "$(dirname "$0")/../lib.sh"
scratch enclosing
root=$(cd "$(dirname "$0")/../../.." && pwd)
layouts=(--all --lab=stress-layout=3 --lab=stress-layout=9 "--lab=stress-layout=5 --lab=stress-inline=7")

# same NAME ANSWERED COMMAND...: prog and its outputs print the same; ANSWERED: does the output answer?
same() {
	local name=$1 answered=$2 has
	shift 2
	"$@" >want.txt 2>&1
	mv prog original
	for layout in "${layouts[@]}"; do
		# shellcheck disable=SC2086
		command_ends 0 "$name $layout" "$BUILD/morph-optimize" $layout --report=json original -o prog
		"$@" >got.txt 2>&1
		cmp -s want.txt got.txt || fail "$name $layout: $(diff want.txt got.txt | head -4)"
		has=no
		! readelf -SW prog | grep -q '\.morph\.enclosing' || has=yes
		[ $has = $answered ] || fail "$name $layout: answers: $has, not $answered"
	done
}

for flags in "-fPIE -pie" "-fPIE -pie -fno-plt -s" "-fPIE -pie -Wl,--emit-relocs" \
	"-fno-pie -no-pie -fno-plt" "-fno-pie -no-pie -Wl,--emit-relocs"; do
	for static in "" -static -static-libgcc; do
		[[ $static != -static || $flags != *-pie*-pie* || $flags = *-no-pie* ]] || continue
		# shellcheck disable=SC2086
		gcc -O2 $flags $static "$root/tests/data/own_code/enclosing.c" -o prog || exit 1
		answered=no
		[ -n "$static" ] || answered=yes
		same "C $flags $static" $answered ./prog
	done
done

# A personality routine of the program's own asks for the region, too: it does so to read tables.
need g++ || exit 1
for flags in "" -s; do
	# shellcheck disable=SC2086
	g++ -x c++ -O2 $flags -fPIE -pie -static-libstdc++ -shared-libgcc -fpermissive -w \
		"$root/tests/data/own_code/enclosing.c" -o prog || exit 1
	same "C++ $flags" yes ./prog
	# shellcheck disable=SC2086
	g++ -x c++ -O2 $flags -fPIE -pie -static-libstdc++ -shared-libgcc -fpermissive -w -DREGION \
		"$root/tests/data/own_code/enclosing.c" -o prog || exit 1
	same "C++, region $flags" no ./prog
done

if command -v rustc >/dev/null; then
	cat >p.rs <<'R'
use std::backtrace::Backtrace;
#[inline(never)]
fn deep(n: u32) -> Result<u32, String> {
    if n == 0 {
        return Err(format!("{}\n{:?}", Backtrace::force_capture(), Backtrace::force_capture()));
    }
    Ok(deep(n - 1)? + n)
}
fn main() {
    println!("{}", deep(3).unwrap_err());
    let args: Vec<String> = std::env::args().collect();
    let r = std::panic::catch_unwind(|| args[args.len() + 2].len());
    println!("{}", r.is_err());
}
R
	for flags in "-O" "-O -Clto=fat -Ccodegen-units=1" "-O -Clink-arg=-Wl,-q" "-O -Cpanic=abort"; do
		# shellcheck disable=SC2086
		rustc $flags -o prog p.rs 2>rustc.txt || continue
		for depth in 1 full; do
			[ -e prog ] || mv original prog
			# Addresses differ, and threads' numbers.
			same "Rust $flags $depth" yes bash -c "RUST_BACKTRACE=$depth ./prog 2>&1 | sed 's/0x[0-9a-f]*/ADDRESS/; s/([0-9]*) panicked/panicked/'"
			grep -q 'deep' want.txt || fail "Rust $flags $depth: no backtrace"
			mv original prog
		done
	done
fi
finish
