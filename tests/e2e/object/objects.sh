#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Rewritten objects of C and C++, relinked by every linker that is installed, do what the originals do:
# compiled by gcc and clang in several ways, blocks in an order that is hard on programs. verify accepts
# them, and refuses objects that were changed.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/lib-objects.sh"
need gcc ld
scratch object

# same WHAT PROGRAM: the program prints what the original prints
same() {
	local got
	got=$("$2" 300 2>&1) || fail "$1 ($what): status $?"
	[ "$got" = "$want" ] || fail "$1 ($what): '$got', not '$want'"
}

# c_objects CC FLAGS...: both objects, every linker
c_objects() {
	local cc=$1 l
	shift
	what="$cc $*"
	$cc "$@" $quiet -c "$here/hot.c" -o hot.o && $cc "$@" $quiet -c "$here/other.c" -o other.o || {
		fail "$what: cannot compile"
		return
	}
	$cc "$@" hot.o other.o -o program || fail "$what: cannot link"
	want=$(./program 300)
	for seed in 1 2; do
		rm -f hot.new.o other.new.o
		rewritten $seed program hot.o hot.new.o
		rewritten $seed program other.o other.new.o
		for l in $linkers; do
			$cc -fuse-ld="$l" "$@" hot.new.o other.new.o -o relinked 2>link.txt || {
				fail "$l ($what): $(head -n 3 link.txt)"
				continue
			}
			same "$l" ./relinked
		done
		ld -r hot.new.o other.new.o -o both.o && $cc "$@" both.o -o relinked && same "ld -r" ./relinked
	done
}

quiet=
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	case $cc in clang*) quiet=-Wno-unused-command-line-argument ;; esac
	for flags in "-O2" "-O3 -ffunction-sections" "-O2 -fno-pie -no-pie" "-O1 -fno-pie -no-pie -ffunction-sections" \
		"-O2 -fPIC" "-Os -fcf-protection=full"; do
		# shellcheck disable=SC2086
		c_objects $cc $flags
	done
done

# C++: exceptions, functions in section groups
for cc in g++ clang++; do
	command -v $cc >/dev/null || continue
	case $cc in clang*) quiet=-Wno-unused-command-line-argument ;; esac
	for flags in "-std=c++14 -O2" "-std=c++14 -O2 -ffunction-sections"; do
		what="$cc $flags"
		# shellcheck disable=SC2086
		$cc $flags -c "$here/../optimize/exceptions.cc" -o cc.o && $cc cc.o -o cc || continue
		want=$(./cc 300 2>&1)
		rm -f cc.new.o
		rewritten 3 cc cc.o cc.new.o
		for l in $linkers; do
			$cc -fuse-ld="$l" cc.new.o -o cc.new && same "$l" ./cc.new
		done
	done
done

# an archive: members in their order, a symbol index that linkers can use
what=archive
gcc -O2 -c "$here/hot.c" -o hot.o
gcc -O2 -c "$here/other.c" -o a_member_with_a_long_name.o
echo text >member.txt
rm -f lib.a
ar rcs lib.a a_member_with_a_long_name.o member.txt hot.o
gcc hot.o a_member_with_a_long_name.o -o program
want=$(./program 300)
rewritten 4 program lib.a lib.new.a
[ "$(ar t lib.new.a | tr '\n' ' ')" = "a_member_with_a_long_name.o member.txt hot.o " ] || fail "members: $(ar t lib.new.a)"
[ "$(nm -s lib.a 2>/dev/null | sed -n '/index/,/^$/p')" = "$(nm -s lib.new.a 2>/dev/null | sed -n '/index/,/^$/p')" ] ||
	fail "the archive's index changed"
gcc -o relinked -Wl,-u,main lib.new.a && same archive ./relinked
# an index by which a linker takes another library's function, or another member
sed '0,/main/s//mein/' lib.new.a >bad.a
command_ends 4 "another name in the index" "$optimize" verify lib.a bad.a
cp lib.new.a bad.a
dd if=lib.new.a of=bad.a bs=1 skip=72 seek=76 count=4 conv=notrunc status=none
! cmp -s lib.new.a bad.a || dd if=lib.new.a of=bad.a bs=1 skip=80 seek=72 count=4 conv=notrunc status=none
command_ends 4 "another member in the index" "$optimize" verify lib.a bad.a

# what was not rewritten by Morph is refused
what="damaged object"
cp hot.o bad.o
objdump -d hot.o >/dev/null
rewritten 5 program hot.o new.o
section=$(readelf -SW new.o | sed -n 's/^ *\[ *\([0-9]*\)\] \.text\.hot\.dispatch .*/\1/p')
[ -n "$section" ] || fail "no section .text.hot.dispatch"
offset=$(readelf -SW new.o | awk '$2 == ".text.hot.dispatch" || $3 == ".text.hot.dispatch" {
	for (i = 1; i < NF; i++) if ($i == "PROGBITS") print $(i + 2) }')
refused=0
for at in {0..37}; do
	cp new.o bad.o
	printf '\x47' | dd of=bad.o bs=1 seek=$((0x$offset + at)) conv=notrunc status=none
	cmp -s new.o bad.o && continue
	if "$optimize" verify hot.o bad.o >/dev/null 2>&1; then
		# a byte that the linker fills in
		gcc new.o a_member_with_a_long_name.o -o good 2>/dev/null
		gcc bad.o a_member_with_a_long_name.o -o bad 2>/dev/null
		cmp -s good bad || fail "verify accepts a changed byte $at"
	else
		refused=$((refused + 1))
	fi
done
[ $refused -gt 25 ] || fail "only $refused mutations"

# clear messages
command_ends 2 "no program" "$optimize" hot.o -o x.o
command_ends 2 "no output" "$optimize" hot.o --program=program
command_ends 2 "a program of a program" "$optimize" program --program=program -o x
head -c 700 hot.o >cut.o
command_ends 1 "a cut object" "$optimize" cut.o --program=program --all -o x.o
one_line "a cut object"
[ ! -e x.o ] || fail "x.o was written"
finish
