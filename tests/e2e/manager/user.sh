#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker of a user without privileges: own programs are optimised in the same way, with own policy, store,
# state and backups; other users' files stay as they are, whatever rules, links and names say; a user who swaps
# a file below root's worker gains nothing; and the system's store is not shown.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3 setpriv
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, to be two users"
	exit 77
}
manager_scratch user
as_user() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups --no-new-privs env HOME="$dir/home" \
		XDG_CONFIG_HOME= XDG_STATE_HOME= MORPH_DB= "$@"
}
# its ARGS: the user's worker, with the defaults of a user
its() {
	command_ends "$1" "$2" as_user "$worker" "${@:3}"
}
mkdir -p home/.config/morph/watch.d home/.local/state/morph home/bin
cp original home/bin/prog
"$BUILD/morphd" --help >/dev/null
profile home/bin/prog 12000
cp db system.db
chmod 640 system.db
cat >home/speed <<END
#!/bin/sh
if cmp -s "$dir/home/bin/prog" "$dir/original"; then echo speed 100; else echo speed 120; fi
END
chmod 755 home/speed
user_rule() { # PROGRAM
	printf '%s\n' "program = $1" "mode = adopt" "command = $dir/home/speed" \
		"audit-time = 60" >home/.config/morph/watch.d/prog.conf
}
user_rule "$dir/home/bin/prog"
echo 'share = 0' >home/.config/morph/morph.conf
chown -R nobody:nogroup home
store=$(as_user "$BUILD/morph-stats" status 2>&1 | grep -o '/[^ :]*\.db' | head -n 1)
case $store in "$dir/home/"*) ;; *) fail "the user's store is $store" ;; esac
as_user mkdir -p "$(dirname "$store")"
cp db "$store" && chown nobody:nogroup "$store"

# ---- the user's own program, as root's
its 0 "own program" --now
[ "$(sqlite3 "$store" "SELECT state FROM job")" = adopted ] || fail "own program: $(cat err.txt)"
cmp -s home/bin/prog original && fail "own program: not replaced"
[ "$(stat -c %U home/bin/prog)" = nobody ] || fail "own program: of $(stat -c %U home/bin/prog)"
[ "$(home/bin/prog 999)" = "$(./original 999)" ] || fail "own program: another output"
[ -n "$(find home/.local/state/morph/backup -type f 2>/dev/null)" ] || fail "own program: no backup in the user's directory"
elsewhere=$(find "$dir" /var/lib /var/tmp /etc /usr/local -newer home/speed -user nobody -not -path "$dir/home/*" \
	-not -path "$dir/home" 2>/dev/null)
[ -z "$elsewhere" ] || fail "own program: written elsewhere: $elsewhere"
command_ends 0 "own program: undo" as_user "$BUILD/morph" undo "$dir/home/bin/prog"
cmp home/bin/prog original || fail "own program: undo"

# ---- the system's store is not shown
command_ends 1 "the system's store" as_user "$BUILD/morph" --db="$dir/system.db"
grep -q "$dir/prog" out.txt && fail "the system's store: shown"
command_ends 0 "the user's page" as_user "$BUILD/morph" --json
grep -q "\"$dir/prog\"" out.txt && fail "the user's page shows another user's program"

# ---- files of root, by a rule, by a link, and by a hard link's directory
mkdir rootdir
cp original rootdir/prog
for how in rule link; do
	rm -rf home/.local/state/morph-worker
	sqlite3 "$store" "DELETE FROM job; DELETE FROM history; DELETE FROM rejected_layout"
	rm -f home/bin/link
	[ $how = rule ] || as_user ln -s "$dir/rootdir/prog" home/bin/link
	user_rule "$(if [ $how = rule ]; then echo "$dir/rootdir/prog"; else echo "$dir/home/bin/link"; fi)"
	its 0 "root's file by a $how" --now
	cmp rootdir/prog original || fail "root's file by a $how: changed"
	[ "$(stat -c %U:%a rootdir/prog)" = root:755 ] || fail "root's file by a $how: $(stat -c %U:%a rootdir/prog)"
	[ "$(find rootdir -mindepth 1 | wc -l)" = 1 ] || fail "root's file by a $how: left behind: $(ls -A rootdir)"
	[ "$(sqlite3 "$store" "SELECT count(*) FROM job WHERE state IN ('adopted', 'kept')")" = 0 ] ||
		fail "root's file by a $how: called adopted"
done

# ---- links in place of the user's state and store: the user's rights are all there is
echo precious >precious
chmod 644 precious
rm -rf home/.local/state/morph-worker
as_user ln -s "$dir/rootdir" home/.local/state/morph-worker
user_rule "$dir/home/bin/prog"
its 1 "root's directory for a state" --now
[ "$(find rootdir -mindepth 1 | wc -l)" = 1 ] || fail "root's directory for a state: written to"
rm home/.local/state/morph-worker

# ---- root's worker, and a user who swaps the file all the time: nothing of root's changes, and the user gets no
# file of root's
rule "mode = adopt" "$(by_speed)"
printf '%s\n' "program = $dir/home/bin/prog" "mode = adopt" "command = $dir/home/speed" \
	"audit-time = 60" >etc/watch.d/prog.conf
cp original secret
chmod 4711 secret # a root program that must not be replaced, nor copied
sum=$(sha256sum <secret)
as_user touch home/swapping
# shellcheck disable=SC2016
as_user bash -c 'cd "$1/home/bin"; cp "$1/original" mine
	while [ -e ../swapping ]; do
		ln -sf "$1/secret" new; mv -f new prog; cp mine new; mv -f new prog
		ln -sf "$1/precious" new; mv -f new prog; cp mine new; mv -f new prog
	done' _ "$dir" 2>/dev/null &
swapper=$!
at_exit 'rm -f "$dir/home/swapping"; kill $swapper 2>/dev/null; rm -rf "$dir"'
for i in {1..6}; do
	"$worker" --config=etc --db=db --state-dir=state --backup-dir=backup --now >out.txt 2>err.txt ||
		[ $? = 1 ] || fail "swapped: status $?: $(cat err.txt)"
	[ "$(sha256sum <secret)" = "$sum" ] || fail "swapped: root's program changed"
	[ "$(cat precious)" = precious ] || fail "swapped: root's file changed"
	[ "$(stat -c %a:%U secret)" = 4711:root ] || fail "swapped: root's program is $(stat -c %a:%U secret)"
done
rm home/swapping
wait $swapper
for f in home/bin/prog home/bin/mine; do
	[ -L $f ] || [ "$(stat -c %U $f)" = nobody ] || fail "swapped: $f belongs to $(stat -c %U $f)"
done
[ -z "$(find home -user root -perm /6000)" ] || fail "swapped: a set-id file of root's in the user's directory"

# ---- a user who swaps a directory of the path for a link
rm -rf home/bin && as_user mkdir home/bin && cp original home/bin/prog && chown nobody:nogroup home/bin/prog
work 0 "before a linked directory" --now
as_user mv home/bin home/real
as_user ln -s "$dir/rootdir" home/bin
work 0 "a linked directory" --now
cmp rootdir/prog original || fail "a linked directory: root's file was replaced"
finish
