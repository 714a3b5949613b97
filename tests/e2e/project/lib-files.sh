# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of damaged and unusual files: a program, its profile and its outputs. Source it
# behind lib.sh, in the directory where the files shall be.

# make_files: prog, prog.o, cg.out (its counts by callgrind), s.db (the same, stored) and fast (its output)
make_files() {
	cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long hot(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++)
		s = i % 7 == 3 ? s ^ i : s + (i * 5) % 11;
	return s;
}
int main(int argc, char **argv)
{
	printf("%ld\n", hot(argc > 1 ? atol(argv[1]) : 1000));
	return 0;
}
C
	gcc -g -O2 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs prog.c -o prog &&
		gcc -O2 -fno-pie -c prog.c || exit 1
	{
		printf 'version: 1\npositions: instr line\nevents: Ir\nob=%s\nfl=x\nfn=hot\n' "$PWD/prog"
		objdump -d --no-show-raw-insn prog | awk '/^[0-9a-f]+ </ {on = /<hot>/} on && /^ / {
			sub(":", "", $1); print "0x" $1, 0, 50000; sum += 50000} END {print "totals: " sum}'
	} >cg.out
	morph-stats -d s.db import cg.out >/dev/null &&
		morph-optimize --report=none --db=s.db -o fast prog || exit 1
}
