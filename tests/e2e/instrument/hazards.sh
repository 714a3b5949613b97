#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that are easy to break, audited in two versions: those that verify refused wrongly. `make check-audits`
# takes all programs and builds. Programs that pass arithmetic flags, or values below the stack pointer, counted: those
# that counters broke. A library with something behind the end of its dynamic section, which the loader would read if a
# new entry stood in place of the end.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc g++ python3
scratch hazards
export PATH="$BUILD:$PATH"

audited() { # WHAT OPTION...
	local what=$1
	shift
	"$root/scripts/check/hazards" --instrument=audit --seeds=1 "$@" >out.txt 2>&1 || fail "$what: $(cat out.txt)"
	tail -n 2 out.txt | sed "s/^/$what: /"
}

audited "jumps to a trap" --every=5 traps
audited "operands of eight bytes" --build=nopie --build=relinkable --build=-O2 models
if command -v ld.mold >/dev/null; then
	audited "relocations behind all sections" --build=mold --build=relinkable --build=-O2 linkers
else
	left_out="$left_out mold,"
fi
for kind in edges edges,threads pep,poll; do
	"$root/scripts/check/hazards" --instrument=$kind --seeds=1 --build=gcc --build=-O2 passes redzone >out.txt 2>&1 ||
		fail "flags and values, $kind: $(cat out.txt)"
	tail -n 2 out.txt | sed "s/^/flags and values, $kind: /"
done

cat >lib.c <<'C'
int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 3 ? i : -x; return s; }
int g(int x) { return x > 3 ? f(x) + 1 : f(x - 1); }
C
cat >user.c <<'C'
int g(int);
int main(int argc, char **argv) { (void)argv; return g(argc + 8) & 63; }
C
gcc -O1 -shared -fPIC -nostartfiles -Wl,--build-id lib.c -o good.so && gcc user.c -o user -L. -l:good.so || exit 1
python3 - <<'P' || exit 1
import struct
lib = bytearray(open("good.so", "rb").read())
start, nr = struct.unpack_from("<Q", lib, 32)[0], struct.unpack_from("<H", lib, 56)[0]
dynamic = next(start + 56 * i for i in range(nr) if struct.unpack_from("<I", lib, start + 56 * i)[0] == 2)
at = struct.unpack_from("<Q", lib, dynamic + 8)[0]
while struct.unpack_from("<q", lib, at)[0]:
    at += 16
struct.pack_into("<qQ", lib, at + 16, 12, 16)  # DT_INIT, at an address without code
open("bad.so", "wb").write(lib)
P
mkdir counting
morph-optimize instrument --all good.so -o counting/good.so >out.txt 2>&1 || fail "no DT_INIT: $(cat out.txt)"
want=0 got=0
LD_LIBRARY_PATH=. ./user || want=$?
LD_LIBRARY_PATH=counting ./user || got=$?
[ $got = $want ] || fail "no DT_INIT: status $got, not $want"
cp bad.so good.so
got=0
LD_LIBRARY_PATH=. ./user || got=$?
[ $got = $want ] || fail "something behind the end of the dynamic section: status $got, not $want"
command_ends 4 "something behind the end of the dynamic section" \
	morph-optimize instrument --all bad.so -o counting/bad.so
says err.txt "no room for one"
finish
