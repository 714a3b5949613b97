#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# llvm-sample: clang compiles with the profile without warnings and uses it; the program stays the same. The counts
# are those of another reader of debug information (llvm-symbolizer), for each way of keeping debug information, by
# exact counts and by samples. Damaged debug information gives an error and no file.
. "$(dirname "$0")/lib-compilers.sh"
need clang clang++ gcc valgrind python3 jq objcopy
profdata=$(command -v llvm-profdata || command -v llvm-profdata-14)
symbolizer=$(command -v llvm-symbolizer || command -v llvm-symbolizer-14)
if [ -z "$profdata" ] || [ -z "$symbolizer" ]; then
	echo "skip: llvm-profdata or llvm-symbolizer is missing (apt-get install llvm)"
	exit 77
fi
flags="-O2 -fdebug-info-for-profiling" link=-no-pie

# exported WHAT PROGRAM PROFILE: the profile of callgrind's counts of PROGRAM
exported() {
	rm -f s.db*
	counted "$2" s.db
	ends 0 "$1" "$3" --db s.db export --format=llvm-sample --binary="$2"
	grep -v '^ ' "$3" | grep -vE '^[A-Za-z_][^ :]*:[0-9]+:[0-9]+$' && fail "$1: a line is no function's"
	"$profdata" show --sample "$3" >show.txt 2>&1 || fail "$1: llvm-profdata: $(head -3 show.txt)"
	says show.txt '^Function: main: ' "$1"
}

# ---- each way of keeping debug information
for how in "-gdwarf-4" "-gdwarf-5" "-gdwarf-5 -gsplit-dwarf" "-gdwarf-4 -gsplit-dwarf" "-gdwarf-5 -ffunction-sections -gz"; do
	# shellcheck disable=SC2086
	clang++ $flags $how $link "so urce/pgo.cc" -o prog || exit 1
	exported "$how" prog "out.prof"
	python3 "$root/tests/e2e/stats/sample-reference.py" "$symbolizer" cg.out ./prog >reference.prof ||
		fail "$how: no reference"
	alike "$how" reference.prof out.prof 95
	# 20,000 rounds: the line of the loop's body, and what is inlined in what is inlined.
	awk '/^[^ ]/ { work = /^_Z4workPKPK5ShapePKil:/ } work && $1 == "4:" && NF > 1 { n = $2 } END { exit !(n > 0) }' \
		out.prof || fail "$how: no count in work(): $(grep -A20 '^_Z4work' out.prof)"
	grep -q '^ [0-9.]*: _ZL6middlel:' out.prof || fail "$how: middle() is not inlined in the profile"
	grep -q '^  [0-9.]*: _ZL4deepl:' out.prof || fail "$how: deep() is not inlined in middle()"
	# The call by the table has both targets' functions, which ran in the ratio 7 to 1.
	awk -F: '/^_ZNK6Square4areaEl:/ { a = $3 } /^_ZNK6Circle4areaEl:/ { b = $3 } END { exit !(a > 6.9 * b && a < 7.1 * b) }' \
		out.prof || fail "$how: calls of the virtual functions: $(grep '^_ZNK' out.prof)"
	[ "$how" = -gdwarf-5 ] && cp out.prof dwarf5.prof
done

# ---- the compiler uses it, and the program stays the same
# shellcheck disable=SC2086
clang++ $flags -gdwarf-5 $link "so urce/pgo.cc" -o prog || exit 1
# shellcheck disable=SC2086
clang++ $flags -g -fprofile-sample-use=dwarf5.prof $link "so urce/pgo.cc" -o again -Rpass=sample-profile-inline \
	2>warnings.txt || fail "clang: $(head -3 warnings.txt)"
grep -q 'warning:' warnings.txt && fail "clang warns: $(grep warning: warnings.txt)"
[ "$(./again)" = "$(./prog)" ] || fail "the program prints something else"
# shellcheck disable=SC2086
clang++ $flags -g -S -emit-llvm -fprofile-sample-use=dwarf5.prof "so urce/pgo.cc" -o with.ll || fail "clang"
says with.ll 'branch_weights' "clang"
says with.ll 'define.*_Z4workPKPK5ShapePKil.*!prof' "clang"
# The rare call is rare: its branch's weights differ more than 100 times.
"$profdata" merge --sample --extbinary dwarf5.prof dwarf5.prof -o merged.prof || fail "merge"
# shellcheck disable=SC2086
clang++ $flags -g -fprofile-sample-use=merged.prof "so urce/pgo.cc" -o again2 2>warnings.txt ||
	fail "the binary format: $(head -3 warnings.txt)"
[ -s warnings.txt ] && fail "the binary format: $(head -3 warnings.txt)"
alike "merged" merged.prof dwarf5.prof 99.9

# ---- a profile of the program that was compiled with a profile; a separate debug file; an output of Morph
exported "compiled again" again again.prof
python3 "$root/tests/e2e/stats/sample-reference.py" "$symbolizer" cg.out ./again >reference.prof
alike "compiled again" reference.prof again.prof 95
# shellcheck disable=SC2086
clang++ $flags -gdwarf-5 $link "so urce/pgo.cc" -o prog && cp prog full || exit 1
rm -f s.db*
counted prog s.db
ends 0 "whole" whole.prof --db s.db export --format=llvm-sample --binary=prog
objcopy --only-keep-debug prog prog.debug && strip -g prog && objcopy --add-gnu-debuglink=prog.debug prog || exit 1
ends 0 "separate debug file" out.prof --db s.db export --format=llvm-sample --binary=prog
cmp -s whole.prof out.prof || fail "a separate debug file changes the profile: $(diff whole.prof out.prof | head -4)"
mv prog.debug away.debug
ends 1 "no debug file" out.prof --db s.db export --format=llvm-sample --binary=prog
[ ! -s out.prof ] || fail "no debug file, but a profile"
says err.txt 'fdebug-info-for-profiling' "no debug file"

# ---- two modules of a program add up
cat >lib.cc <<'C'
static inline long shared(long x) { long s = 0; for (long i = 0; i < x; i++) s ^= i * 3; return s; }
__attribute__((noinline)) long LIB(long x) { return shared(x) + 1; }
C
echo 'long first(long); long second(long); int main() { return (int)(first(100) + second(50)) & 1 ? 0 : 0; }' >two.cc
for n in first second; do
	# shellcheck disable=SC2086
	clang++ $flags -gdwarf-4 -DLIB=$n -fPIC -shared lib.cc -o lib$n.so || exit 1
done
# shellcheck disable=SC2086
clang++ $flags -gdwarf-4 two.cc -o two ./libfirst.so ./libsecond.so || exit 1
rm -f s.db*
valgrind -q --tool=callgrind --dump-instr=yes --callgrind-out-file=cg.out ./two 2>vg.txt || fail "callgrind"
ends 0 "import of two" import.txt --db s.db import cg.out
ends 0 "modules" out.prof --db s.db export --format=llvm-sample
for f in main _Z5firstl _Z6secondl; do says out.prof "^$f:" "modules"; done
says err.txt 'functions that ran are left out' "functions of libc"

# ---- names of C, which other symbols share, and what gcc compiled: its discriminators are none of LLVM's
cat >names.c <<'C'
volatile int sink;
__attribute__((noinline)) int real(int x)
{
	for (int i = 0; i < x; i++) { if (i % 3) sink = i; else if (i % 5) sink += 2; else sink ^= x; }
	return sink;
}
extern int Alias(int) __attribute__((alias("real")));
extern int other(int) __attribute__((alias("real")));
__asm__(".globl more\n.symver real, more@@V1");
int main(void) { return real(1000) == 7; }
C
echo 'V1 { };' >names.map
for by in clang gcc; do
	$by -O2 -g $link -Wl,--version-script=names.map names.c -o names || exit 1
	rm -f s.db*
	counted names s.db
	ends 0 "names by $by" names.prof --db s.db export --format=llvm-sample --binary=names
	says names.prof '^real:' "names by $by"
	grep -E '^(Alias|other|more)' names.prof && fail "names by $by: an alias"
done
grep -E '^ [0-9]+\.' names.prof && fail "gcc's discriminators: $(cat names.prof)"

# ---- samples
if "$BUILD/morphd" run --no-kernel --db probe.db -- true 2>err.txt; then
	cp full prog
	counted prog x.db
	ends 0 "exact" exact.prof --db x.db export --format=llvm-sample --binary=prog
	sampled r.db prog 3000 ./prog 30000000
	ends 0 "samples" samples.prof --db r.db export --format=llvm-sample --binary=prog
	# Samples measure time: calls of the two smallest functions, by pointers, take more of it than their counts say.
	alike "samples" exact.prof samples.prof 60
	# shellcheck disable=SC2086
	clang++ $flags -g -fprofile-sample-use=samples.prof "so urce/pgo.cc" -o sampled 2>warnings.txt || fail "clang: $(head -3 warnings.txt)"
	[ "$(./sampled)" = "$(./full)" ] || fail "the program prints something else"
	# Samples of an output of Morph are samples of its original's lines.
	"$BUILD/morph-optimize" --db x.db --exact-profile --report=none -o prog.morph prog 2>err.txt ||
		fail "morph-optimize: $(cat err.txt)"
	sampled o.db prog.morph 3000 ./prog.morph 30000000
	ends 0 "an output" output.prof --db o.db export --format=llvm-sample --binary=prog
	alike "an output" samples.prof output.prof 80
else
	left_out="sampling"
fi

# ---- no profile from what is damaged
rm -f s.db*
cp full prog
counted prog s.db
# broken WHAT SECTION OFFSET BYTES: with BYTES at OFFSET of the section
broken() {
	local at
	cp full prog
	at=$(readelf -SW prog | sed -n "s/.* \\$2 *[A-Z]* *[0-9a-f]* \\([0-9a-f]*\\) .*/\\1/p")
	[ -n "$at" ] || { fail "no section $2"; return; }
	printf '%b' "$4" | dd of=prog bs=1 seek=$((0x$at + $3)) conv=notrunc status=none
	ends 1 "$1" out.prof --db s.db export --format=llvm-sample --binary=prog
	[ ! -s out.prof ] || fail "$1: a profile is written"
	one_line "$1"
	says err.txt 'damaged\|no function that ran' "$1"
}
broken "no version of lines" .debug_line 4 '\xff\xff'
broken "no version of units" .debug_info 4 '\xff\xff'
broken "abbreviations" .debug_abbrev 0 '\x00\x00\x00\x00\x00\x00\x00\x00'
cp full prog
name=$(grep -abo _Z4workPKPK5ShapePKil prog | sed 's/:.*//')
for at in $name; do printf '_Z4w\n' | dd of=prog bs=1 seek="$at" conv=notrunc status=none; done
ends 1 "a name with a line break" out.prof --db s.db export --format=llvm-sample --binary=prog
[ ! -s out.prof ] || fail "a name with a line break: a profile is written"
says err.txt 'damaged: the name' "a name with a line break"
# A tree whose entries call their first child the next sibling: a walk would double at each level.
{
	cat <<'S'
	.globl main
	.type main, @function
	.file 1 "nested.c"
main:	.loc 1 5
	mov $1000, %ecx
1:	.loc 1 6
	dec %ecx
	jnz 1b
	.loc 1 7
	xor %eax, %eax
	ret
end:	.size main, . - main
	.section .note.GNU-stack, "", @progbits
	.section .debug_line, "", @progbits
line:	.section .debug_abbrev, "", @progbits
abbrev:	.byte 1, 0x11, 1, 3, 8, 0x10, 0x17, 0x11, 1, 0x12, 7, 0, 0 # unit: name, lines, addresses
	.byte 2, 0x2e, 1, 3, 8, 0x3b, 0xb, 0x11, 1, 0x12, 7, 0, 0 # function: name, line, addresses
	.byte 3, 0xb, 1, 1, 0x13, 0, 0, 4, 0xb, 0, 0, 0, 0 # blocks: with children and a sibling; empty
	.section .debug_info, "", @progbits
info:	.long last - 1f
1:	.short 4
	.long abbrev
	.byte 8, 1
	.asciz "nested.c"
	.long line
	.quad main, end - main
	.byte 2
	.asciz "main"
	.byte 5
	.quad main, end - main
S
	for i in {1..60}; do printf 'b%d: .byte 3\n.long b%d - info\n' "$i" $((i + 1)); done
	printf 'b61: .byte 4\n.skip 62\nlast:\n'
} >nested.s
gcc -no-pie nested.s -o nested || exit 1
rm -f s.db*
counted nested s.db
ends 1 "siblings that are children" out.prof --db s.db export --format=llvm-sample --binary=nested
[ ! -s out.prof ] || fail "siblings that are children: a profile is written"
says err.txt 'damaged' "siblings that are children"
cp full prog
# shellcheck disable=SC2086
clang++ $flags -gdwarf-5 -gsplit-dwarf $link "so urce/pgo.cc" -o split || exit 1
rm -f s.db*
counted split s.db
rm -f -- *.dwo
ends 1 "no .dwo file" out.prof --db s.db export --format=llvm-sample --binary=split
[ ! -s out.prof ] || fail "no .dwo file: a profile is written"
finish
