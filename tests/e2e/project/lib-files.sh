# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the tests of damaged and unusual files: a program, its profile and its outputs. Source it
# behind lib.sh, in the directory where the files shall be.

# make_files: prog, prog.o, cg.out (its counts by callgrind), s.db (the same, stored) and fast (its output)
make_files() {
	hot_program prog
	gcc -O2 -fno-pie -c prog.c || exit 1
	callgrind_counts prog hot 50000 >cg.out
	morph-stats -d s.db import cg.out >/dev/null &&
		morph-optimize --report=none --db=s.db -o fast prog || exit 1
}
