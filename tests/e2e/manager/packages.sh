#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a round for each moment at which dpkg may act
# morph-worker beside dpkg: a package is upgraded, or removed, before and after each program that a round starts.
# The file that dpkg wrote stays, whatever the round was about to do; the next round optimises the new version; a
# removed program is gone, with one line that says so, and its original is dropped after the retention.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3 dpkg dpkg-deb
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, as dpkg does"
	exit 77
}
manager_scratch packages
prog=$dir/root/usr/bin/prog
cp original v1
cp newer v2

# ---- two versions of a package, in a root of their own
mkdir -p root/var/lib/dpkg/{updates,info}
touch root/var/lib/dpkg/{status,available}
for v in 1 2; do
	mkdir -p "pkg$v/DEBIAN" "pkg$v/usr/bin"
	cp "v$v" "pkg$v/usr/bin/prog"
	printf '%s\n' "Package: morph-small" "Version: $v" "Architecture: amd64" "Maintainer: nobody <nobody@localhost>" \
		"Description: a small program" >"pkg$v/DEBIAN/control"
	(cd "pkg$v" && md5sum usr/bin/prog >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -Znone -b "pkg$v" "v$v.deb" >/dev/null || exit 1
done
cat >dpkg-here <<END
#!/bin/sh
exec dpkg --root="$dir/root" --force-script-chrootless --no-triggers --log="$dir/dpkg.log" "\$@" >>"$dir/dpkg.out" 2>&1
END
chmod 755 dpkg-here
untouched() { # WHAT: every file is as dpkg wrote it
	[ -z "$(dpkg --root="$dir/root" --verify morph-small 2>&1)" ] ||
		fail "$1: $(dpkg --root="$dir/root" --verify morph-small 2>&1)"
}

# ---- programs of Morph that run ./hook once, before or after their work
mkdir bin
cp "$BUILD/morph-worker" bin/
ln -s "$BUILD/morph-stats" "$BUILD/morphd" bin/
for real in "$BUILD/morph-optimize" "$dir/worker/morph-audit"; do
	p=$(basename "$real")
	cat >bin/$p <<END
#!/bin/sh
# What the worker wants: write, verify, audit, adopt or restore.
case $p-\$1 in
morph-audit-*) act=audit ;;
*-verify | *-adopt | *-restore) act=\$1 ;;
*) act=write ;;
esac
at() {
	[ "\$(cat "$dir/when" 2>/dev/null)" = "\$act \$1" ] || return 0
	rm "$dir/when"
	"$dir/hook"
}
at before
"$real" "\$@"
ret=\$?
at after
exit \$ret
END
	chmod 755 bin/$p
done
worker=$dir/bin/morph-worker

# The original of the version that lies there has the speed 100, a version of Morph \$FAST.
cat >speed <<END
#!/bin/sh
if cmp -s "$prog" "$dir/v1" || cmp -s "$prog" "$dir/v2"; then echo speed 100; else cat "$dir/fast"; fi
END
chmod 755 speed
echo speed 120 >fast

state() { db "SELECT state FROM job WHERE path = '$prog'"; }
steps() { db "SELECT group_concat(step || ':' || verdict, ' ') FROM (SELECT * FROM history WHERE round = $1 ORDER BY key)"; }

# install VERSION, and as it was before Morph
fresh() {
	rm -rf state backup cores/*
	db "DELETE FROM job; DELETE FROM history; DELETE FROM rejected_layout; DELETE FROM spent"
	./dpkg-here -i "v$1.deb" || fail "dpkg -i: $(tail -n 3 dpkg.out)"
}
# The audits run as root, so that their hook can call dpkg.
adopt_rule() {
	printf '%s\n' "program = $prog" "mode = ${1:-adopt}" "user = root" "$(by_speed)" >etc/watch.d/prog.conf
}
# optimised VERSION WHAT: the file is a proved version of dpkg's
optimised() {
	cmp -s "$prog" "v$1" && fail "$2: v$1 is not optimised"
	"$BUILD/morph-optimize" verify --report=none "v$1" "$prog" || fail "$2: not a version of v$1"
}
each_once() {
	local twice
	twice=$(db "SELECT step FROM history GROUP BY path, round, step HAVING count(*) > 1")
	[ -z "$twice" ] || fail "$1: twice in a round: $twice"
}
rm -f db db-*
adopt_rule
./dpkg-here -i v1.deb
profile root/usr/bin/prog 12000
./dpkg-here -i v2.deb
profile root/usr/bin/prog 12000
cat >hook <<END
#!/bin/sh
"$dir/dpkg-here" -i "$dir/v2.deb" && touch "$dir/upgraded"
# The state of the job begins in a later second than the change of the file.
sleep 1.1
END
chmod 755 hook

# upgraded_at WHEN: the round of v1 meets the upgrade, and the round of v2 comes to its end
upgraded_at() {
	rm -f upgraded
	echo "$1" >when
	work 0 "upgraded $1" --now
	[ -e upgraded ] || fail "upgraded $1: the hook did not run"
	work 0 "upgraded $1, later" --now
	[ "$(state)" = "$2" ] || fail "upgraded $1: $(state), not $2: $(db 'SELECT detail FROM job')"
	[[ "$(steps 2)" == "upgrade:changed "* ]] || fail "upgraded $1: the second round is '$(steps 2)'"
	each_once "upgraded $1"
	[ "$(db "SELECT count(*) FROM history WHERE step = 'upgrade'")" = 1 ] || fail "upgraded $1: $(steps 1), $(steps 2)"
}

for when in "write before" "write after" "verify before" "verify after" "audit before" "audit after" "adopt before" \
	"adopt after"; do
	fresh 1
	upgraded_at "$when" adopted
	optimised 2 "upgraded $when"
done

# ---- the audit's verdict is about a file that is not there any more: advice, and not faster
adopt_rule advise
fresh 1
upgraded_at "audit after" advised
untouched "advice"
adopt_rule
echo speed 80 >fast
fresh 1
upgraded_at "audit after" not-faster
untouched "not faster"
echo speed 120 >fast

# ---- on probation, and while the original is put back
for when in "restore before" "restore after"; do
	fresh 1
	work 0 "before $when" --now
	[ "$(state)" = adopted ] || fail "before $when: $(state)"
	touch cores/core.prog.0.0123.77.1
	rm -f upgraded
	echo "$when" >when
	work 0 "upgraded $when" --now
	[ -e upgraded ] || fail "upgraded $when: the hook did not run"
	rm -f cores/core.*
	work 0 "upgraded $when, later" --now
	[ "$(state)" = adopted ] || fail "upgraded $when: $(state): $(db 'SELECT detail FROM job')"
	optimised 2 "upgraded $when"
	each_once "upgraded $when"
done
fresh 1
work 0 "before an upgrade on probation" --now
./dpkg-here -i v2.deb
untouched "on probation"
work 0 "upgraded on probation" --now
[ "$(state)" = adopted ] || fail "upgraded on probation: $(state)"
optimised 2 "upgraded on probation"

# ---- removed in the middle of a round
cat >hook <<END
#!/bin/sh
"$dir/dpkg-here" -r morph-small && touch "$dir/upgraded"
sleep 1.1
END
removed() { # WHAT
	[ -e "$prog" ] && fail "$1: it is there again"
	[ -z "$(ls -A root/usr/bin 2>/dev/null)" ] || fail "$1: left behind: $(ls -A root/usr/bin)"
	[ "$(state)" = gone ] || fail "$1: $(state): $(db 'SELECT detail FROM job')"
	[ "$(grep -c 'prog: gone: there is no such file any more' err.txt)" = 1 ] || fail "$1: $(cat err.txt)"
	each_once "$1"
}
for when in "write before" "write after" "verify before" "audit before" "audit after" "adopt before" "adopt after"; do
	fresh 1
	rm -f upgraded
	echo "$when" >when
	work 0 "removed $when" --now
	[ -e upgraded ] || fail "removed $when: the hook did not run"
	removed "removed $when"
	work 0 "removed $when, later" --now
	[ -s err.txt ] && fail "removed $when: said again: $(cat err.txt)"
done

# ---- removed after the adoption: the original stays for the retention, the history for ever
fresh 1
work 0 "before a removal" --now
[ "$(state)" = adopted ] || fail "before a removal: $(state)"
original=$(find backup -type f ! -name '*.json' ! -name path | head -n 1)
[ -n "$original" ] || fail "before a removal: no backup: $(find backup)"
./dpkg-here -r morph-small
[ -e "$prog" ] && fail "dpkg left an optimised file"
work 0 "removed" --now
removed "removed"
[ -e "$original" ] || fail "removed: its original is gone at once"
"$BUILD/morph" --db=db history >out.txt
says out.txt 'there is no such file any more' "removed"
"$BUILD/morph" --db=db list --all >out.txt
says out.txt 'removed' "removed"
command_ends 0 "morph undo --all has nothing to do" "$BUILD/morph" --db=db --backup-dir=backup undo --all
[ -e "$prog" ] && fail "morph undo --all brought a removed program back"
./dpkg-here -i v1.deb
untouched "installed again"
work 0 "installed again" --now
[ "$(state)" = adopted ] || fail "installed again: $(state)"
optimised 1 "installed again"
finish
