#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What root's programs write by names in a user's directory, while that user makes links: reports, pictures,
# databases, recordings, versions, locks. No file of root's changes, and none appears in root's directory.
. "$(dirname "$0")/lib-trust.sh"
need jq objdump readelf sqlite3
. "$(dirname "$0")/../manager/lib-manager.sh"
manager_scratch trust-files
mkdir theirs rootdir && chown nobody:nogroup theirs
echo precious >precious
cp db other.db && chmod 644 other.db

# ---- a directory of the name is the user's link to root's
as_nobody ln -s "$dir/rootdir" theirs/in
linked() {
	"$BUILD/$1" "${@:2}" >out.txt 2>err.txt && fail "a linked directory: $*: done"
	untouched "a linked directory: $*"
}
linked morph-optimize --report=none --all -o theirs/in/out prog
linked morph-optimize instrument --kind=edges --all --counts="$dir/c" -o theirs/in/out prog
linked morph-optimize --report=none --all --lab=list-patches=theirs/in/list -o out prog
rm -f out
linked morph-stats --db=db heat -o theirs/in/heat.svg
linked morph-stats --db=db flame -o theirs/in/flame.svg
linked morph-stats merge -o theirs/in/all.db db other.db
linked morph-stats import --db=theirs/in/new.db perf.text
linked morph --db=db report -o theirs/in/page.html
linked morph-audit --pairs=:2 --export=theirs/in/pairs.csv prog original -- 10
linked morphd run --db=theirs/in/db -- true
linked morphd run --record=theirs/in/record -- true

# ---- the last part of the name is a link, or a second name
for program in "morph-optimize --report=none --all -o theirs/x prog" "morph-stats --db=db heat -o theirs/x" \
	"morph-stats --db=db flame -o theirs/x" "morph --db=db report -o theirs/x" "morph-stats merge -o theirs/x db other.db" \
	"morphd run --db=theirs/x -- true" "morphd run --record=theirs/x -- true" \
	"morph-audit --pairs=:2 --export=theirs/x.csv prog original -- 10"; do
	for how in "as_nobody ln -s $dir/precious" "as_nobody ln -s $dir/rootdir/new" "ln precious"; do
		rm -f theirs/x*
		$how theirs/x
		$how theirs/x.csv
		# shellcheck disable=SC2086
		"$BUILD/"$program >out.txt 2>err.txt
		untouched "$how: $program"
	done
done

# ---- the lock beside a database
for how in "as_nobody ln -s $dir/precious" "as_nobody ln -s $dir/rootdir/new" "ln precious" "as_nobody mkfifo"; do
	rm -f theirs/*
	as_nobody cp other.db theirs/db
	$how theirs/db.lock
	timeout 600 "$BUILD/morphd" run --db=theirs/db -- true >out.txt 2>err.txt
	[ $? != 124 ] || fail "lock: $how: waited for"
	untouched "lock: $how"
done

# ---- the directory becomes a link while root writes
cat >swap.c <<'END'
/* swap DIRECTORY TARGET: DIRECTORY/d and a link to TARGET change names, until DIRECTORY/stop is there */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc != 3 || chdir(argv[1]) || mkdir("d", 0755) || symlink(argv[2], "link"))
		return 1;
	alarm(60);
	while (access("stop", F_OK))
		renameat2(AT_FDCWD, "d", AT_FDCWD, "link", RENAME_EXCHANGE);
	return 0;
}
END
gcc -O2 -D_GNU_SOURCE -o swap swap.c || exit 1
rm -rf theirs/*
as_nobody "$dir/swap" "$dir/theirs" "$dir/rootdir" &
swapper=$!
for i in {1..30}; do
	"$BUILD/morph-optimize" --report=none --all -o theirs/d/out$i prog
	"$BUILD/morph-stats" --db=db heat -o theirs/d/heat$i.svg
	"$BUILD/morph-stats" merge -o theirs/d/all$i.db db other.db
	"$BUILD/morph-stats" import --db=theirs/d/new$i.db perf.text
done >/dev/null 2>&1
as_nobody touch theirs/stop
wait $swapper
untouched "a directory that becomes a link"
finish
