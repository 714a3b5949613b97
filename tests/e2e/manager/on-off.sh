#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph on and morph off: the settings that are written, what the policy makes of them, the units that are started
# and stopped; off waits for a worker, puts every original back from any state, compares bytes, and ends right
# wherever it is killed and called again.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch on-off
gcc -O1 -o kill-at "$root/tests/tools/kill_at.c" || exit 1
export STATE_DIRECTORY=$dir/state
m() { # STATUS WHAT ARGS
	command_ends "$1" "$2" "$BUILD/morph" --db=db --backup-dir=backup "${@:3}"
}
on() {
	m "$1" "$2" on --policy=etc "${@:3}"
}
off() {
	m "$1" "$2" off --policy=etc "${@:3}"
}
printf '%s\n' 'min-samples = 1000' 'exclude = /opt/secret/*' >etc/morph.conf

# ---- a dry run changes nothing
on 0 "dry run" --dry-run --only="$dir/*"
[ ! -e etc/on.conf ] || fail "dry run: wrote on.conf"
says out.txt 'Morph would look after each program' "dry run"
says out.txt "100.0 %  $dir/prog" "dry run"
says out.txt 'Nothing was changed' "dry run"
on 0 "dry run without a policy" --dry-run --policy=none
[ ! -e none ] || fail "dry run without a policy: made the directory"

# ---- the settings, and what they mean
on 0 "on" --except=/usr/lib/* --except=/opt/other
says out.txt 'Morph looks after each program' "on"
says out.txt '^.morph explain PROGRAM. says how far it is' "on"
diff etc/on.conf - <<'END' >&2 || fail "on: other settings"
# Written by morph on; `morph off' removes it. See morph.conf(5).
mode = adopt
share = 1%
counting = yes
exclude = /usr/lib/*
exclude = /opt/other
END
[ "$(stat -c %a etc/on.conf)" = 644 ] || fail "on: mode $(stat -c %a etc/on.conf)"
work 0 "the worker reads it" --check
m 0 "list" watch --policy=etc list
says out.txt 'Programs above 1.0 % of the machine: adopt' "list"
on 0 "again" --counting=no --only="$dir/p*"
diff etc/on.conf - <<END >&2 || fail "again: other settings"
# Written by morph on; \`morph off' removes it. See morph.conf(5).
mode = adopt
share = 1%
counting = no
only = $dir/p*
END
on 0 "running processes" --live --counting=no --only="$dir/p*"
[ "$(grep -c '^live = yes$' etc/on.conf)" = 1 ] || fail "running processes: $(cat etc/on.conf)"
says out.txt 'changed while they run' "running processes"
on 0 "again without" --counting=no --only="$dir/p*"
grep live etc/on.conf && fail "again without: running processes are still meant"
on 0 "json" --json --dry-run --only=/usr/bin/none
json "json" ".command == \"on\" and .dry_run and .counting and (.live | not) and .only == [\"/usr/bin/none\"] and .except == [] and
	.units == \"none\" and .collecting == false and (.why | length > 0) and .share_percent == 1 and
	.file == \"etc/on.conf\" and
	([.programs[] | select(.path == \"$dir/prog\")][0] | .candidate == false and .percent == 100 and
	(.why_not | test(\"no rule names it\")))"
on 0 "excluded" --json --dry-run --except="$dir/*"
json "excluded" "[.programs[] | select(.path == \"$dir/prog\")][0].why_not | test(\"excluded by $dir/\\\\*\")"
on 2 "no path" --only=perl
says err.txt "a pattern of paths must begin with /" "no path"
on 2 "two settings in one" --only=$'/a\nmode = advise'
on 2 "counting how" --counting=perhaps
on 2 "a word" perl
grep -q '^counting = no$' etc/on.conf || fail "a refused call has changed on.conf"
echo 'mode = maybe' >etc/watch.d/wrong.conf
on 2 "a wrong policy" --counting=yes
grep -q '^counting = no$' etc/on.conf || fail "a wrong policy: on.conf was changed"
rm etc/watch.d/wrong.conf
[ -z "$(find etc -name '.*' -type f)" ] || fail "left behind: $(find etc -name '.*')"

# ---- only and exclude reach the worker
on 0 "only others" --only=/usr/bin/none
work 0 "only others" --now
[ "$(db 'SELECT count(*) FROM job')" = 0 ] || fail "only others: $(db 'SELECT path, state FROM job')"
on 0 "all" --counting=no
work 0 "all" --now
[ "$(db 'SELECT count(*) > 0 FROM job')" = 1 ] || fail "all: the worker looks after nothing"
cmp prog original || fail "all: replaced without any measurement"
on 0 "not this one" --except="$dir/*"
db "UPDATE job SET state = 'wanted'; DELETE FROM history"
work 0 "not this one" --now
state_is refused "not this one"
on 0 "permitted again" --counting=no
work 0 "permitted again" --now
[ "$(db 'SELECT state FROM job')" != refused ] || fail "permitted again: it is refused for ever"
[ "$(db "SELECT reason FROM history WHERE step = 'allow'")" = "the policy now permits it" ] || fail "permitted again: $(db 'SELECT step, reason FROM history')"

# ---- off: nothing was replaced
off 0 "nothing to undo"
[ ! -e etc/on.conf ] || fail "nothing to undo: on.conf is there"
says out.txt 'No program is replaced' "nothing to undo"
off 0 "twice"

# ---- off: versions in each state in which one may lie there
speed 120
adopt() { # the worker puts a version in place
	forget
	rule "mode = adopt" "$(by_speed)"
	work 0 "adopt" --now
	state_is adopted "adopt"
	cmp -s prog original && fail "adopt: not replaced"
	rm etc/watch.d/prog.conf
	on 0 "adopt"
}
is_off() { # WHAT
	cmp prog original || fail "$1: the original is not back"
	[ ! -e etc/on.conf ] || fail "$1: on.conf is there"
	[ ! -e state/0123456789abcdef ] || fail "$1: counts are left"
	state_is undone "$1"
}
adopt
snapshot() {
	rm -rf snap
	mkdir snap
	cp -a state backup db etc prog snap/
}
again() {
	rm -rf state backup etc db-wal db-shm
	cp -a snap/. .
}
snapshot
for state in adopted kept auditing undoing; do
	again
	db "UPDATE job SET state = '$state'"
	mkdir -p state/0123456789abcdef/counting.counts
	touch state/0123456789abcdef/counting.counts/1000
	off 0 "$state"
	says out.txt "$dir/prog: undone" "$state"
	says out.txt '1 file that Morph replaced has its original bytes' "$state"
	is_off "$state"
done
# What the worker undid stays so; what off undid begins a new round when Morph is on again.
on 0 "undone, and on again"
state_is undone "undone, and on again"
again
off 0 "off, and on again"
on 0 "off, and on again"
state_is wanted "off, and on again"
cmp prog original || fail "off, and on again: on has replaced it"
again
off 0 "json" --json
json "json" ".command == \"off\" and .originals == 1 and .remaining == 0 and .rules == 0 and .file == \"etc/on.conf\" and
	(.programs | length == 1) and .programs[0].path == \"$dir/prog\" and .programs[0].status == 0"
is_off "json"
again
rm -f db db-*
off 0 "without the store"
cmp prog original || fail "without the store: the original is not back"

# ---- a rule that says adopt stays, and off says so
again
rule "mode = adopt" "$(by_speed)"
off 0 "a rule"
says out.txt '1 rule in etc/watch.d still says adopt' "a rule"
[ -e etc/watch.d/prog.conf ] || fail "a rule: it is gone"
is_off "a rule"

# ---- an upgraded file stays; a damaged backup is no success
again
cp newer prog.new && mv prog.new prog
off 0 "upgraded"
cmp prog newer || fail "upgraded: the new file is gone"
again
chmod 600 backup/*/*
for b in backup/*/*; do case $b in *.json) ;; *) echo damaged >"$b" ;; esac; done
off 1 "damaged"
says err.txt "$dir/prog: is still a version of Morph" "damaged"
cmp -s prog original && fail "damaged: how could that be?"

# ---- a worker that is at work: it is ended, and cannot replace the file afterwards
forget
mkdir -m 777 shared
cat >speed <<END
#!/bin/sh
touch "$dir/shared/started"
exec sleep 300
END
on 0 "at work"
rule "mode = adopt" "$(by_speed)"
"$worker" --config=etc --db=db --state-dir=state --backup-dir=backup --now >out.worker 2>err.worker &
working=$!
at_exit "kill $working 2>/dev/null; rm -rf '$dir'"
awaits "[ -e '$dir/shared/started' ]" || fail "at work: the audit has not begun: $(cat err.worker)"
rm etc/watch.d/prog.conf
off 0 "at work"
# It has let go of the lock, and does nothing but end.
awaits "! kill -0 $working 2>/dev/null" || fail "at work: the worker still runs"
wait $working
cmp prog original || fail "at work: the original is not there"

# ---- killed before its changes, and called again; STRIDE=1 takes each
speed 120
adopt
mkdir -p state/0123456789abcdef/counting.counts
snapshot
for ((n = 1; ; n += ${STRIDE:-4})); do
	again
	./kill-at $n "$BUILD/morph" --db=db --backup-dir=backup off --policy=etc >out.txt 2>err.txt
	[ $? = 137 ] || break
	cmp -s prog original || cmp -s prog snap/prog || fail "killed at $n: prog is no whole version"
	off 0 "killed at $n"
	is_off "killed at $n"
	work 0 "killed at $n" --now
	cmp prog original || fail "killed at $n: the worker has replaced it again"
done
[ $n -gt 5 ] || fail "killed: only $n points"
is_off "not killed"

# ---- units: a user's, with a systemctl that writes down what it was asked
mkdir -p fake home/.config run/systemd
touch run/systemd/private
cat >fake/systemctl <<END
#!/bin/sh
echo "\$*" >>"$dir/asked"
case "\$*" in *is-active*) exit 3 ;; esac
END
chmod 755 fake/systemctl
unset STATE_DIRECTORY
chmod 777 . run/systemd
touch asked
chmod 666 asked
as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
[ "$(id -u)" != 0 ] || chown -R nobody:nogroup home
user() { # STATUS WHAT ARGS
	command_ends "$1" "$2" "${as_user[@]}" env HOME="$dir/home" XDG_CONFIG_HOME= XDG_STATE_HOME= MORPH_DB= \
		XDG_RUNTIME_DIR="$dir/run" PATH="$dir/fake:$PATH" "$BUILD/morph" "${@:3}"
}
asked() { # WHAT LINE...
	local what=$1
	shift
	printf '%s\n' "$@" | diff asked - >&2 || fail "$what: systemctl was asked other things"
	: >asked
}
user 0 "a user: dry run" on --dry-run
[ ! -s asked ] || fail "a user: dry run: $(cat asked)"
user 0 "a user: on" on
says out.txt 'morph-optimize.timer is started' "a user: on"
grep -q '^mode = adopt$' home/.config/morph/on.conf || fail "a user: on: no settings"
asked "a user: on" "--quiet --user list-unit-files --no-legend morph-optimize.timer" \
	"--quiet --user is-active morph-optimize.timer" "--quiet --user enable --now morph-optimize.timer"
user 0 "a user: off" off
says out.txt "The worker's timer is disabled" "a user: off"
[ ! -e home/.config/morph/on.conf ] || fail "a user: off: settings are left"
asked "a user: off" "--quiet --user list-unit-files --no-legend morph-optimize.timer" \
	"--quiet --user stop morph-optimize.timer morph-optimize.service" \
	"--quiet --user list-unit-files --no-legend morph-optimize.timer" \
	"--quiet --user disable morph-optimize.timer"
mkdir -p home/.config/morph/watch.d
printf 'program = /opt/x\nmode = adopt\n' >home/.config/morph/watch.d/x.conf
chmod -R go-w home/.config
[ "$(id -u)" != 0 ] || chown -R nobody:nogroup home
user 0 "a user: off with a rule" off
says out.txt "so the worker's timer is as it was" "a user: off with a rule"
asked "a user: off with a rule" "--quiet --user list-unit-files --no-legend morph-optimize.timer" \
	"--quiet --user stop morph-optimize.timer morph-optimize.service" \
	"--quiet --user list-unit-files --no-legend morph-optimize.timer" \
	"--quiet --user is-enabled morph-optimize.timer" "--quiet --user start morph-optimize.timer"
printf '#!/bin/sh\nexit 1\n' >fake/systemctl
user 0 "a user: no units" on
says out.txt 'No unit of systemd is there' "a user: no units"

# ---- root's, in a mount namespace of its own
cat >fake/systemctl <<END
#!/bin/sh
echo "\$*" >>"$dir/asked"
case "\$*" in *is-active*) exit 3 ;; esac
END
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	cp -a /etc etc.root
	mkdir -p etc.root/morph
	cat >as-root <<END
mount --bind "$dir/etc.root" /etc && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib &&
	mkdir -p /run/systemd/system && exec env MORPH_DB= PATH="$dir/fake:\$PATH" "$BUILD/morph" "\$@"
END
	: >asked
	command_ends 0 "root: on" unshare -m sh as-root on
	says out.txt 'morphd and morph-optimize.timer are started' "root: on"
	asked "root: on" "--quiet list-unit-files --no-legend morph-optimize.timer" "--quiet is-active morph-optimize.timer" \
		"--quiet enable --now morph-optimize.timer morph-optimize.path morphd.service"
	[ -e etc.root/morph/on.conf ] || fail "root: on: no settings"
	command_ends 0 "root: off" unshare -m sh as-root off
	asked "root: off" "--quiet list-unit-files --no-legend morph-optimize.timer" \
		"--quiet stop morph-optimize.timer morph-optimize.path morph-optimize.socket morph-optimize.service" \
		"--quiet is-active morph-fleet-builds.timer" \
		"--quiet list-unit-files --no-legend morph-optimize.timer" \
		"--quiet disable morph-optimize.timer morph-optimize.path"
	[ ! -e etc.root/morph/on.conf ] || fail "root: off: settings are left"
	grep -q fleet out.txt && fail "root: off: it speaks of a fleet: $(cat out.txt)"
	# This host installs the builds of a fleet: they would come back within the hour.
	sed -i '/is-active/d' fake/systemctl
	command_ends 0 "root: off in a fleet" unshare -m sh as-root off
	says out.txt 'morph-fleet-builds.timer.* is disabled, too' "root: off in a fleet"
	asked "root: off in a fleet" "--quiet list-unit-files --no-legend morph-optimize.timer" \
		"--quiet stop morph-optimize.timer morph-optimize.path morph-optimize.socket morph-optimize.service" \
		"--quiet is-active morph-fleet-builds.timer" "--quiet disable --now morph-fleet-builds.timer" \
		"--quiet stop morph-fleet-builds.service" \
		"--quiet list-unit-files --no-legend morph-optimize.timer" \
		"--quiet disable morph-optimize.timer morph-optimize.path"
fi
finish
