#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No file that Morph writes follows a symbolic link of another user: as root, Morph neither
# overwrites nor makes files through such links. Links of the user's own are followed.
. "$(dirname "$0")/../lib.sh"
need gcc setpriv sqlite3
[ "$(id -u)" = 0 ] || skip "only root can be another user"
scratch links
theirs=$(mktemp -d /tmp/links.XXXXXX)
at_exit 'rm -rf "$dir" "$theirs"'
morphd=$BUILD/morphd
optimize=$BUILD/morph-optimize
stats=$BUILD/morph-stats
"$morphd" run --record probe --db=prof.db -- true 2>err.txt ||
	skip "no sampling on this machine: $(head -n 1 err.txt)"
gcc -O1 -Wl,--emit-relocs -o prog "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
cp prog original

as_them() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
chown 65534:65534 "$theirs"

# traps NAME...: make links of another user, to root's file or to a missing one
traps() {
	local name
	echo precious >"$dir/victim"
	rm -f "$dir/made" "$theirs"/*
	for name; do
		as_them ln -s "$dir/$name" "$theirs/$name"
	done
}
unharmed() { # WHAT
	[ "$(cat "$dir/victim")" = precious ] || fail "$1: wrote to the file that the link leads to"
	[ -e "$dir/made" ] && fail "$1: made a file where the link leads"
	[ -z "$(find "$theirs" -name '*.tmp' -o -name '.morph*')" ] || fail "$1: $(ls -A "$theirs")"
}

for to in victim made; do
	for what in "run --db=$theirs/$to" "run --record=$theirs/$to" "run --record=$theirs/$to --db=own.db"; do
		traps victim made
		# shellcheck disable=SC2086
		command_ends 1 "morphd $what" "$morphd" $what -- true
		says err.txt 'a symbolic link that belongs to another user: not followed' "morphd $what"
		unharmed "morphd $what"
	done
	# The lock file lies beside the database under its own name.
	traps
	as_them ln -s "$dir/$to" "$theirs/db.lock"
	command_ends 1 "lock, $to" "$morphd" run --db="$theirs/db" -- true
	unharmed "lock, $to"
	# Also a directory that is a link.
	traps
	mkdir -p "$dir/private"
	as_them ln -sfn "$dir/private" "$theirs/sub"
	command_ends 1 "directory, $to" "$morphd" run --record="$theirs/sub/$to" -- true
	says err.txt 'another user: not followed' "directory, $to"
	[ -z "$(ls -A "$dir/private")" ] || fail "directory: $(ls -A "$dir/private")"
	for what in "$optimize --all --report=none -o $theirs/$to prog" \
		"$optimize --all --report=none --lab=list-patches=$theirs/$to -o out prog" \
		"$stats export --db=prof.db --format=json -o $theirs/$to" \
		"$stats merge $theirs/$to prof.db"; do
		traps victim made
		# shellcheck disable=SC2086
		$what >out.txt 2>err.txt
		unharmed "$what"
	done
done
# A link in a world-writable directory, in place of an earlier database.
traps
chmod 1777 "$theirs"
as_them ln -s "$dir/made" "$theirs/p.db"
command_ends 1 "sticky" "$morphd" run --db="$theirs/p.db" -- true
unharmed sticky
# A recording replaces its own name; another hard link to the old file stays as it was.
ln victim name
command_ends 0 "hard link" "$morphd" run --record=name -- true
[ "$(cat victim)" = precious ] || fail "hard link: wrote to the other name"
# Links of root's own, and paths that are no regular files.
ln -s "$dir/mine" own
command_ends 0 "a link of root's" "$morphd" run --record=own -- true
[ -s mine ] && [ -L own ] || fail "a link of root's is not followed"
[ "$(stat -c %a mine)" = 600 ] || fail "a recording is of mode $(stat -c %a mine)"
command_ends 0 "/dev/null" "$morphd" run --record=/dev/null -- true
[ -c /dev/null ] || fail "/dev/null is gone"
# Only the owner may read a database; a system user's group may, too.
command_ends 0 "a new database" "$morphd" run --db=fresh.db -- true
[ "$(stat -c %a fresh.db)" = 640 ] || fail "root's database is of mode $(stat -c %a fresh.db)"
cp fresh.db "$theirs/read.db"
chmod 640 "$theirs/read.db"
as_them "$stats" query --db="$theirs/read.db" >out.txt 2>err.txt && fail "anybody may read root's database"
says err.txt 'Permission denied: root and the members of the group root may read it' "not for all"

# A reason after a very long path is not cut off. A name cannot clear the screen.
long=$dir
while [ ${#long} -lt 700 ]; do
	long=$long/$(printf 'x%.0s' {1..100})
done
mkdir -p "$long"
echo text >"$long/file"
command_ends 1 "a long path" "$optimize" --all -o out "$long/file"
says err.txt 'not an ELF file\|too short\|truncated' "a long path"
echo text >$'odd\e[2J'
command_ends 1 "an odd name" "$optimize" --all -o out $'odd\e[2J'
says err.txt 'odd\\x1b\[2J' "an odd name"
# The message for a bad time shows the accepted forms.
for what in "$stats query --since=lastweek" "$optimize --since=lastweek -o out prog"; do
	# shellcheck disable=SC2086
	command_ends 2 "$what" $what
	says err.txt "lastweek.*not a time: give 90s, 10m, 2h" "$what"
done
finish
