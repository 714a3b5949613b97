#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of counts in a user's directory: an instrumented program of root's writes through nothing that the user put
# there, and prints what it always prints; root imports what the user left as numbers, or not at all.
. "$(dirname "$0")/lib-trust.sh"
need sqlite3 objdump readelf
. "$(dirname "$0")/../manager/lib-manager.sh"
manager_scratch trust-counts
mkdir theirs rootdir && chown nobody:nogroup theirs
echo precious >precious
: >empty
want=$(./original 5000)

# ---- what lies where the counts should be
for kind in edges audit; do
	rm -rf theirs/*
	"$BUILD/morph-optimize" instrument --kind=$kind --all --counts="$dir/theirs/c" --report=none -o out prog || fail "$kind"
	[ "$(./out 5000)" = "$want" ] || fail "$kind: another output"
	[ $kind = audit ] || cp theirs/c good
	size=$(stat -c %s theirs/c)
	for how in "ln -s $dir/precious" "ln -s $dir/rootdir/new" "ln -s /dev/zero" mkfifo mkdir "cp /bin/true" \
		"truncate -s $size" "truncate -s 1" "cp /dev/null"; do
		rm -rf theirs/c
		# shellcheck disable=SC2086
		as_nobody $how theirs/c
		[ "$(timeout 600 ./out 5000)" = "$want" ] || fail "$kind: $how: another output"
		untouched "$kind: $how"
	done
	rm -rf theirs/c
	ln precious theirs/c
	[ "$(./out 5000)" = "$want" ] || fail "$kind: a second name: another output"
	untouched "$kind: a second name"
done
rm -rf theirs/*

# ---- a user who changes the file while root imports it, and what is no file of counts
"$BUILD/morph-optimize" instrument --kind=edges --all --counts="$dir/theirs/c" --report=none -o out prog || exit 1
cp good theirs/c && chown nobody:nogroup theirs/c
imports() {
	timeout 600 "$BUILD/morph-stats" import --db=new.db --binary=out theirs/c >out.txt 2>err.txt
	local status=$?
	[ $status -le 4 ] || fail "$1: status $status: $(head -n 2 err.txt)"
}
for i in {1..40}; do
	as_nobody dd if=/dev/urandom of=theirs/c bs=1 seek=$((RANDOM % $(stat -c %s good))) count=64 conv=notrunc status=none
	imports "changed bytes"
done
for how in "ln -s $dir/precious" "ln -s /dev/zero" mkfifo mkdir "cp /dev/null" "truncate -s 1T"; do
	rm -rf theirs/c
	# shellcheck disable=SC2086
	as_nobody $how theirs/c
	imports "$how"
done
rm -rf theirs/c
as_nobody bash -c 'cd "$1"; for i in {1..2000}; do cp "$2" c; : >c; done' _ "$dir/theirs" "$dir/good" 2>/dev/null &
changer=$!
for _ in {1..40}; do imports "a file that becomes shorter"; done
kill $changer 2>/dev/null
wait $changer 2>/dev/null
untouched "imports"
[ "$(sqlite3 new.db 'PRAGMA integrity_check')" = ok ] || fail "imports: the database is damaged"
"$BUILD/morph-stats" status --db=new.db >out.txt 2>&1 || fail "imports: $(cat out.txt)"

# ---- any counts give a version that behaves as the original, or none
"$BUILD/morph-optimize" --db=new.db --min-samples=1 --report=none -o version prog 2>err.txt
[ $? -le 4 ] || fail "a version of hostile counts: $(cat err.txt)"
[ ! -e version ] || [ "$(./version 5000)" = "$want" ] || fail "a version of hostile counts: another output"
finish
