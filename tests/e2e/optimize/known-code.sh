#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Code that programs and tools know by a range of addresses, by a table, or by the frames of the stack: random programs,
# gprof's counts, XRay's map, and Rust's backtraces behave as before. The long form has more programs and D's traces, and
# GCL's image, whose heap ends in the file, is refused.
# timeout: 3600
. "$(dirname "$0")/../lib.sh"
scratch known-code
need gcc setarch

nr=16
[ "${MORPH_LONG:-0}" = 0 ] || nr=500
"$root/scripts/check/known-code" --programs=$nr >programs.txt 2>&1 || fail "$(cat programs.txt)"
says programs.txt " 0 different"

# same WHAT FILE COMMAND: COMMAND says the same of a rewritten FILE as of FILE
same() {
	local layout
	cp "$2" kept && eval "$3" >was.txt 2>&1
	for layout in --all --lab=stress-layout=2; do
		"$BUILD/morph-optimize" $layout kept -o "$2" >opt.txt 2>&1 || { fail "$1 $layout: $(tail -n 1 opt.txt)"; continue; }
		eval "$3" >now.txt 2>&1
		cmp -s was.txt now.txt || fail "$1 $layout: $(diff was.txt now.txt | head -4)"
	done
}

# refused WHAT FILE WORDS: FILE is left alone, with a reason
refused() {
	command_ends 4 "$1" "$BUILD/morph-optimize" --all "$2" -o refused.out
	says err.txt "$3" "$1"
}

cat >counted.c <<'C'
#include <stdio.h>
__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }
__attribute__((noinline)) int middle(int x) { return x & 1 ? leaf(x) + leaf(x + 2) : x / 2; }
int main(void) { int sum = 0; for (int i = 0; i < 1000; i++) sum += middle(i); printf("%d\n", sum); return 0; }
C
for flags in "-fno-pie -no-pie" "-fPIE -pie" "-fno-pie -no-pie -mfentry" "-fno-pie -static" "-fno-pie -static -s"; do
	# shellcheck disable=SC2086
	gcc -O2 -pg $flags -o counted counted.c || exit 1
	case $flags in
	*static*) refused "-pg $flags" counted "its code ends" ;;
	*) refused "-pg $flags" counted "-pg" ;;
	esac
done

for flags in "-fPIE -pie" "-fno-pie -no-pie" "-fno-pie -no-pie -s" "-fno-pie -no-pie -Wl,-q" "-fno-pie -static -s" "-O0"; do
	# shellcheck disable=SC2086
	gcc -O2 $flags -o block "$root/tests/data/own_code/block.c" || exit 1
	same "a block $flags" block ./block
	says now.txt "^36 13$" "a block $flags"
done

cat >sleds.cc <<'C'
#include <stdio.h>
#include <xray/xray_interface.h>
static int entered[8];
[[clang::xray_never_instrument]] static void hook(int32_t id, XRayEntryType type) { entered[id & 7] += type == XRayEntryType::ENTRY; }
[[clang::xray_always_instrument, gnu::noinline]] int leaf(int x) { return x * 3 + 1; }
[[clang::xray_always_instrument, gnu::noinline]] int top(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
[[clang::xray_never_instrument]] int main() {
	__xray_set_handler(hook);
	int before = top(10), ok = __xray_patch() == XRayPatchingStatus::SUCCESS, sum = top(100);
	printf("%d %d %d %d %d\n", ok, before, sum, entered[1], entered[2]);
}
C
for flags in "-fPIE -pie" "-fno-pie -no-pie" "-fPIE -pie -fuse-ld=lld"; do
	# shellcheck disable=SC2086
	clang++ -O2 -fxray-instrument $flags -o sleds sleds.cc 2>cc.txt || { echo "note: no XRay: $(head -n 1 cc.txt)"; continue; }
	same "XRay $flags" sleds ./sleds
	says now.txt " 100 1$\| 1 100$" "XRay $flags"
done

cat >trace.rs <<'R'
use std::backtrace::Backtrace;
#[inline(never)]
fn deep(n: u32) -> String {
    if n == 0 { return Backtrace::force_capture().to_string(); }
    deep(n - 1) + "."
}
fn main() {
    for line in deep(3).lines().filter(|l| !l.trim_start().starts_with("at ")).take(4) { println!("{}", line.trim()); }
    let v: Vec<u32> = (0..3).collect();
    println!("{}", v[std::env::args().count() + 5]);
}
R
for flags in "-O" "-O -Cpanic=abort" "-g -Copt-level=1" "-O -Cstrip=symbols"; do
	# shellcheck disable=SC2086
	rustc $flags -o trace trace.rs 2>cc.txt || { echo "note: no Rust: $(head -n 1 cc.txt)"; break; }
	# shellcheck disable=SC2016
	same "Rust $flags" trace 'RUST_BACKTRACE=1 ./trace 2>&1 | sed "s/thread .main. ([0-9]*)//"'
	case $flags in
	*strip*) ;;
	*) says now.txt "0: trace::deep" "Rust $flags" ;;
	esac
done

[ "${MORPH_LONG:-0}" = 0 ] || {
	cat >trace.d <<'D'
int deep(int n) { if (n == 0) throw new Exception("none"); return deep(n - 1) + n; }
void main() { deep(3); }
D
	for compiler in "gdc -O1 -o" "ldc2 -g -of"; do
		# shellcheck disable=SC2086
		$compiler trace trace.d 2>cc.txt || { echo "note: no D: $(head -n 1 cc.txt)"; continue; }
		# shellcheck disable=SC2016
		same "D: $compiler" trace './trace 2>&1 | sed "s/\[0x.*//"'
	done
	for image in /usr/lib/gcl*/unixport/saved_gcl; do
		[ -f "$image" ] || continue
		refused "$image" "$image" "its heap begins"
	done
}
finish
