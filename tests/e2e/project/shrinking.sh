#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: it reads objects
# A file becomes shorter while a program reads it: one line says so, and nothing is left behind.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-files.sh"
need gcc objdump
scratch shrinking
export PATH=$BUILD:$PATH TMPDIR=$dir/tmp LC_ALL=C
mkdir tmp
# A sanitizer's own library must come first.
! nm -D "$BUILD/morph-stats" 2>/dev/null | grep -q __asan_ || { echo "skip: a sanitizer catches SIGBUS itself"; exit 77; }
gcc -D_GNU_SOURCE -shared -fPIC "$root/tests/e2e/project/shrink.c" -o shrink.so || exit 1
make_files
cp prog whole

names() {
	find . -name 's.db-*' -o -name '*.txt' -o -print | sort
}
before=$(names)
while read -r command; do
	cp whole prog
	# shellcheck disable=SC2086
	SHRINK=prog LD_PRELOAD=$dir/shrink.so command_ends 1 "$command" $command
	says err.txt "^${command%% *}: a file became shorter" "$command"
	one_line "$command"
	[ "$(names)" = "$before" ] || fail "$command: $(diff <(echo "$before") <(names))"
done <<'LIST'
morph-optimize --db=s.db -o none prog
morph-optimize verify prog fast
morph-optimize train -o none -- ./prog 5
morph-optimize refine --db=s.db -o none prog -- ./prog 5
morph-audit --compilations prog fast
morph-stats -d s.db heat -o none.svg prog
morph-stats -d s.db annotate --binary=prog hot
LIST
finish
