#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# What disappears: a database that is removed while morphd writes it, and the path of a program that is longer
# than the kernel can say.
. "$(dirname "$0")/../lib.sh"
need gcc jq
scratch removed
sampling
cat >busy.c <<'C'
#include <stdlib.h>
int main(int argc, char **argv)
{
	volatile unsigned long sum = 0;
	for (unsigned long i = 0; i < (argc > 1 ? strtoul(argv[1], NULL, 0) : 1) * 100000000; i++)
		sum += i;
	return 0;
}
C
gcc -O1 -static -o busy busy.c || exit 1

# The command removes the database itself.
command_ends 1 "a database that is removed" "$BUILD/morphd" run --db=s.db -- sh -c './busy 2; rm s.db s.db-*'
says err.txt 's.db: was removed or replaced while it was in use'
! grep -q captured err.txt || fail "captured: $(cat err.txt)"
[ ! -e s.db ] || fail "the database came back"

# A program below directories whose names together have more than 4,096 characters
name=$(printf '%0200d' 0)
top=$PWD
for ((i = 0; i < 22; i++)); do
	mkdir "$name" && cd "$name" || exit 1
done
cp "$top/busy" . 2>/dev/null || cat <"$top/busy" >busy || exit 1
chmod +x busy
"$BUILD/morphd" run --json --no-kernel --rate=4000 --db="$top/p.db" -- ./busy 6 >"$top/out.txt" 2>"$top/err.txt" ||
	fail "a long path: $(cat "$top/err.txt")"
cd "$top" || exit 1
json "a long path is no anonymous memory" '.reasons.unreadable > 100 and .reasons.anonymous == 0'
finish
