#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No file that Morph writes follows a symbolic link of another user: root's overwrites nothing, and makes
# nothing, where such a link leads. Links of one's own lead where they lead.
. "$(dirname "$0")/lib.sh"
need gcc setpriv sqlite3
[ "$(id -u)" = 0 ] || skip "only root can be another user"
scratch links
theirs=$(mktemp -d /tmp/links.XXXXXX)
trap 'rm -rf "$dir" "$theirs"' EXIT
morphd=$BUILD/morphd
optimize=$BUILD/morph-optimize
stats=$BUILD/morph-stats
"$morphd" run --record probe --db=prof.db -- true 2>err.txt ||
	skip "no sampling on this machine: $(head -n 1 err.txt)"
gcc -O1 -Wl,--emit-relocs -o prog "$root/tests/e2e/busy.c" -ldl -lpthread || exit 1
cp prog original

as_them() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
chown 65534:65534 "$theirs"

# traps NAME...: each is another user's link, to a file of root's or to none
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
	# The lock has a name of its own, beside the database.
	traps
	as_them ln -s "$dir/$to" "$theirs/db.lock"
	command_ends 1 "lock, $to" "$morphd" run --db="$theirs/db" -- true
	unharmed "lock, $to"
	# A directory that is a link, too.
	traps
	mkdir -p "$dir/private"
	as_them ln -sfn "$dir/private" "$theirs/sub"
	command_ends 1 "directory, $to" "$morphd" run --record="$theirs/sub/$to" -- true
	says err.txt 'another user: not followed' "directory, $to"
	[ -z "$(ls -A "$dir/private")" ] || fail "directory: $(ls -A "$dir/private")"
	for what in "$optimize --all --report=none -o $theirs/$to prog" \
		"$optimize --all --report=none --list-patches=$theirs/$to -o out prog" \
		"$stats export --db=prof.db --format=json -o $theirs/$to" \
		"$stats merge $theirs/$to prof.db"; do
		traps victim made
		# shellcheck disable=SC2086
		$what >out.txt 2>err.txt
		unharmed "$what"
	done
done
# A link in a directory of everybody's, where the database of an earlier day was.
traps
chmod 1777 "$theirs"
as_them ln -s "$dir/made" "$theirs/p.db"
command_ends 1 "sticky" "$morphd" run --db="$theirs/p.db" -- true
unharmed sticky
# Of a file with another name a recording replaces this one only.
ln victim name
command_ends 0 "hard link" "$morphd" run --record=name -- true
[ "$(cat victim)" = precious ] || fail "hard link: wrote to the other name"
# Links of one's own, and what is no file.
ln -s "$dir/mine" own
command_ends 0 "a link of root's" "$morphd" run --record=own -- true
[ -s mine ] && [ -L own ] || fail "a link of root's is not followed"
[ "$(stat -c %a mine)" = 600 ] || fail "a recording is of mode $(stat -c %a mine)"
command_ends 0 "/dev/null" "$morphd" run --record=/dev/null -- true
[ -c /dev/null ] || fail "/dev/null is gone"
# Databases are for their owner, and of a system's user for the group.
command_ends 0 "a new database" "$morphd" run --db=fresh.db -- true
[ "$(stat -c %a fresh.db)" = 640 ] || fail "root's database is of mode $(stat -c %a fresh.db)"
cp fresh.db "$theirs/read.db"
chmod 640 "$theirs/read.db"
as_them "$stats" query --db="$theirs/read.db" >out.txt 2>err.txt && fail "anybody may read root's database"
says err.txt 'Permission denied: root and the members of the group root may read it' "not for all"

# A reason that a long path would have cut off, and a name that would clear the screen.
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
# What a time may look like.
for what in "$stats query --since=lastweek" "$optimize --since=lastweek -o out prog"; do
	# shellcheck disable=SC2086
	command_ends 2 "$what" $what
	says err.txt "lastweek.*not a time: give 90s, 10m, 2h" "$what"
done
finish
