#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a second build of the programs
# The build without the optional parts (make CORE=1): no archive has code of a part, a program says which part it
# lacks, and what remains works.
. "$(dirname "$0")/../lib.sh"
need make gcc nm
scratch core
core=$dir/build
make -C "$root" --no-print-directory CORE=1 O="$core" programs "$core/tests/test_optimize" >make.log 2>&1 || {
	fail "does not build: $(grep -m 3 'error\|Error' make.log)"
	finish
}
[ ! -e "$core/morph-fleet" ] && [ ! -e "$core/morph_marker.so" ] || fail "it has a program of a part"

# All functions of the parts, but for those that stand in for them
parts=$(make -s -C "$root" --no-print-directory parts | tail -n 1)
for part in $parts; do
	find "$BUILD/obj/$part" -name '*.o' -exec nm -j --defined-only --extern-only {} +
done | grep -v ':$' | sort -u >parts.txt
nm -j --defined-only --extern-only "$core"/*.a 2>/dev/null | grep -v ':$' | sort -u >core.txt
nm -j --defined-only --extern-only "$core/obj/editor/absent/absent.o" | sort >absent.txt
comm -12 parts.txt core.txt | diff - absent.txt >differ.txt || fail "of the parts it has: $(cat differ.txt)"
[ "$(wc -l <parts.txt)" -gt 100 ] || fail "only $(wc -l <parts.txt) functions of parts in $BUILD"

echo 'int main(void) { return 0; }' >prog.c
gcc -g -Wl,--emit-relocs -o prog prog.c && gcc -c -o prog.o prog.c || fail "gcc"
command_ends 2 "an object" "$core/morph-optimize" --program=prog --all -o fast.o prog.o
says err.txt 'does not rewrite objects'
command_ends 2 "an object to verify" "$core/morph-optimize" verify prog.o prog.o
command_ends 2 "compilations" "$core/morph-audit" --compilations ./prog ./prog
says err.txt 'does not compare compilations'
command_ends 1 "markers" "$core/morph-optimize" --all --markers=remove -o fast prog
says err.txt 'does not know code markers'
[ ! -e fast ] && [ ! -e fast.o ] || fail "it wrote an output"

(cd "$root" && "$core/tests/test_optimize") >unit.txt 2>&1 || fail "test_optimize: $(tail -n 3 unit.txt)"
for test in optimize/places optimize/strip stats/merge; do
	TMPDIR=$dir BUILD=$core bash "$root/tests/e2e/$test.sh" >test.txt 2>&1
	case $? in 0 | 77) ;; *) fail "$test: $(tail -n 3 test.txt)" ;; esac
done
finish
