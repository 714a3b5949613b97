#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone for half a minute
# alone: it samples
# morphd as a service, without systemd: its configuration, SIGHUP, its
# messages on the notify socket, its watchdog messages, its state after a
# kill or a full disk, and the rights of its unit's user.
. "$(dirname "$0")/../lib.sh"
# A private disk is mounted below; it disappears with the test's mount namespace.
if [ $EUID = 0 ] && [ -z "${SERVICE_MOUNTS:-}" ] && unshare -m true 2>/dev/null; then
	SERVICE_MOUNTS=own exec unshare -m bash "$0"
fi
MORPHD=$BUILD/morphd
need sqlite3 python3 jq
scratch service

# ---- --check-config
# checked STATUS MESSAGE [OPTION...]
checked() {
	local want=$1 message=$2
	shift 2
	command_ends "$want" "--check-config $*" "$MORPHD" --check-config "$@"
	[ ! -s out.txt ] || fail "--check-config $*: writes to standard output"
	if [ -n "$message" ]; then
		[ "$(cat err.txt)" = "morphd: $message" ] || fail "--check-config $*: $(cat err.txt)"
	else
		[ ! -s err.txt ] || fail "--check-config $*: $(cat err.txt)"
	fi
}
printf 'rate = 99\n# all else as it is\n' >good.conf
printf '\nrate = 99\nsource = magic\n' >bad.conf
checked 0 "" --config=good.conf
checked 0 "" -c good.conf --rate=5 --db=x
checked 0 "" -c /dev/null
checked 2 "bad.conf:3: source = magic: not kmod, bpf, perf, replay or auto" -c bad.conf
checked 2 "none.conf: No such file or directory" -c none.conf
checked 2 ".: Is a directory" -c .
[ -e /etc/morph/morphd.conf ] ||
	checked 2 "/etc/morph/morphd.conf: No such file or directory"
[ ! -e x ] && [ ! -e x.lock ] || fail "--check-config makes a database"
# A start with this configuration is refused in the same way, before files are created.
command_ends 2 "a start with a wrong configuration" "$MORPHD" -c bad.conf --db=x
says err.txt '^morphd: bad.conf:3: '
one_line "a wrong configuration"
[ ! -e x ] && [ ! -e x.lock ] || fail "a wrong configuration makes a database"

if [ $EUID != 0 ]; then
	echo "skip: sampling the whole system needs root"
	exit 77
fi
sampling
source=$(echo $sources | cut -d' ' -f1)

# ---- a listener on the notify socket
cat >listen.py <<'P'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(65536).decode().replace("\n", " "), flush=True)
P
python3 listen.py "$PWD/socket" >heard &
listener=$!
daemon=
leave() {
	kill -KILL $listener $daemon
	wait $listener $daemon
	rm -rf "$dir"
} 2>/dev/null
at_exit leave

# until_true WHAT COMMAND...: wait long enough for any machine; a failure only ends the wait
until_true() {
	local what=$1 i
	shift
	for ((i = 0; i < 600; i++)); do
		! "$@" || return 0
		[ -z "$daemon" ] || kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	fail "$what: waited for in vain: $(tail -n 3 heard daemon.err)"
	return 1
}
heard() { # [+N] PATTERN: received on the socket, after line N
	local from=1
	case $1 in
	+*)
		from=$((${1#+} + 1))
		shift ;;
	esac
	tail -n "+$from" heard | grep -q -e "$1"
}
so_far() { wc -l <heard; }
until_true "the listener" test -S socket || exit 1
# start OPTION...: start morphd and wait until it collects
start() {
	local before
	before=$(so_far)
	NOTIFY_SOCKET=$PWD/socket "$MORPHD" --config=now.conf "$@" 2>>daemon.err &
	daemon=$!
	until_true "READY=1" heard "+$before" "^READY=1 STATUS="
}
# stop [STATUS]: stop morphd and print how many samples it reports; all its
# messages have been received then
stop() {
	local before got
	before=$(so_far)
	kill -TERM $daemon
	wait $daemon
	got=$?
	daemon=
	until_true "STOPPING=1" heard "+$before" '^STOPPING=1$'
	[ $got = "${1:-0}" ] || fail "SIGTERM: status $got: $(cat daemon.err)"
	captured=$(sed -n 's/^morphd: captured \([0-9]*\) samples.*, \([0-9]*\) lost.*/\1 \2/p' daemon.err |
		tail -n 1 | awk '{print $1 + $2}')
}
ask() { sqlite3 -readonly -cmd '.timeout 20000' "$@"; } # DATABASE SQL
stored() { ask "$1" "SELECT coalesce(sum(nr), 0) FROM ledger WHERE what = 'emitted'"; }
sessions() { ask "$1" "SELECT count(*) FROM session"; }
grown() { [ "$(stored "$1")" -gt "$2" ]; }
sound() { # DATABASE WHAT
	"$BUILD/morph-stats" -d "$1" status --check >out.txt 2>err.txt || fail "$2: $(cat err.txt)"
}
# reload TEXT: write the configuration; return when the daemon has read it
reload() {
	local before
	before=$(so_far)
	printf '%b' "$1" >now.conf
	kill -HUP $daemon
	until_true "RELOADING=1" heard "+$before" '^RELOADING=1 MONOTONIC_USEC=[0-9][0-9]*$' &&
		until_true "READY=1 after a reload" heard "+$before" '^READY=1 STATUS='
}

# ---- start, reload, stop: all captured samples are stored
# (These rates come from the test alone: a measured rate is a prime number.)
printf 'source = %s\nrate = 500\ninterval = 0.2\n' "$source" >now.conf
start --db=a.db
says daemon.err '^morphd: a.db: the database is empty$'
says heard "^READY=1 STATUS=$source, [0-9]* Hz: 0 samples of 0 modules, 0 lost$"
until_true "a flush" grown a.db 0
until_true "a status" heard "^STATUS=$source, [0-9]* Hz: [1-9][0-9]* samples of [1-9][0-9]* modules, [0-9]* lost$"
reload "source = $source\nrate = 500\ninterval = 0.1\n"
says daemon.err '^morphd: now.conf: read again$'
[ "$(sessions a.db)" = 1 ] || fail "another interval: $(sessions a.db) sessions"
n=$(stored a.db)
until_true "samples after a reload" grown a.db "$n"
for wrong in "rate = fast\n" "source = $source\nrte = 5\n" "rate = 5\nrate = 6\n" \
	"database = /else/where.db\n"; do
	: >daemon.err
	# Without --db on the command line, the configuration could name another database.
	reload "$wrong"
	n=$(stored a.db)
	case $wrong in
	database*) says daemon.err '^morphd: now.conf: read again; the source is new$' ;;
	*)
		says daemon.err '^morphd: now.conf:[12]: '
		says daemon.err '^morphd: the old settings stay in force$'
		[ "$(sessions a.db)" = 1 ] || fail "a wrong configuration: $(sessions a.db) sessions" ;;
	esac
	until_true "samples after a wrong reload" grown a.db "$n"
done
# The last configuration changed the rate and the source to the automatic ones.
[ "$(sessions a.db)" = 2 ] || fail "a right configuration: $(sessions a.db) sessions"
reload "source = $source\nrate = 210\ninterval = 0.1\nno-kernel = yes\n"
[ "$(sessions a.db)" = 3 ] || fail "another rate: $(sessions a.db) sessions"
heard "^READY=1 STATUS=$source, 210 Hz" || fail "the new rate is not said: $(tail -n 2 heard)"
n=$(stored a.db)
until_true "samples of the new session" grown a.db "$n"
if [ ! -e /dev/morphmon ]; then
	reload "source = kmod\nrate = 97\n"
	says daemon.err '^morphd: the old source stays in use$'
	heard "^READY=1 STATUS=$source, 210 Hz" || fail "the old source does not go on: $(tail -n 2 heard)"
	n=$(stored a.db)
	until_true "samples of the old source" grown a.db "$n"
fi
stop
sound a.db "after reloads"
[ "$captured" = "$(stored a.db)" ] || fail "captured $captured, stored $(stored a.db)"
[ "$(ask a.db "SELECT count(DISTINCT rate_hz) FROM session")" -ge 3 ] ||
	fail "rates: $(ask a.db "SELECT rate_hz FROM session" | tr '\n' ' ')"

# Without --db the file names the database; a change applies from the next start on.
printf 'source = %s\nrate = 101\ninterval = 0.1\ndatabase = %s/named.db\n' "$source" "$PWD" >now.conf
: >daemon.err
start
reload "source = $source\nrate = 101\ninterval = 0.2\ndatabase = $PWD/b.db\n"
says daemon.err '^morphd: now.conf: the database cannot change while morphd runs$'
says daemon.err '^morphd: the old settings stay in force$'
stop
[ -s named.db ] && [ ! -e b.db ] || fail "the database of the configuration: $(ls)"
# A recording has one source and one rate. Without a configuration file, SIGHUP has nothing to read.
printf 'source = %s\nrate = 101\n' "$source" >now.conf
start --record=r.rec
reload "source = $source\nrate = 102\n"
says daemon.err '^morphd: now.conf: source and rate cannot change within a recording$'
stop
"$MORPHD" --input=r.rec --db=replayed.db 2>err.txt || fail "a recording across a reload: $(cat err.txt)"

# ---- watchdog messages: sent only while there is progress
printf 'source = %s\nrate = 101\ninterval = 0.1\n' "$source" >now.conf
lives() { grep -c '^WATCHDOG=1$' heard; }
more_lives() { [ "$(lives)" -ge "$1" ]; }
stopped() { grep -q '^State:.T' "/proc/$daemon/status"; }
[ "$(lives)" = 0 ] || fail "signs of life that nobody asked for"
WATCHDOG_USEC=200000 start --db=a.db
until_true "signs of life" more_lives 5
# No message for a second. If an earlier message still arrives, until_true repeats.
silent() {
	local n
	n=$(lives)
	sleep 1
	[ "$(lives)" = "$n" ]
}
kill -STOP $daemon
until_true "the daemon stands" stopped
until_true "no signs of life of a daemon that stands still" silent
n=$(lives)
kill -CONT $daemon
until_true "signs of life, again" more_lives $((n + 3))
stop
# WATCHDOG_PID names another process, so systemd does not watch this one.
n=$(lives)
WATCHDOG_USEC=200000 WATCHDOG_PID=1 start --db=a.db
before=$(so_far)
for i in 1 2 3 4 5; do
	until_true "a status" heard "+$before" '^STATUS='
	before=$(so_far)
done
stop
[ "$(lives)" = "$n" ] || fail "signs of life for another process"

# ---- after a kill: the next start works and reports the kill
sound a.db "before the kill"
: >daemon.err
start --db=a.db
! grep -q 'did not shut down properly' daemon.err || fail "an orderly end is taken for a kill"
n=$(stored a.db)
until_true "samples" grown a.db "$n"
killed=$daemon
kill -KILL $daemon
wait $daemon 2>/dev/null
daemon=
sound a.db "after SIGKILL"
n=$(stored a.db)
before=$(sessions a.db)
: >daemon.err
start --db=a.db
says daemon.err "^morphd: a.db: session $((before + 1)) begins; the last one, by $source, from 20.* UTC, has [0-9]* samples$"
says daemon.err "^morphd: the last morphd (process $killed) did not shut down properly: its samples after 20.* UTC are lost$"
until_true "samples after SIGKILL" grown a.db "$n"
[ "$(sessions a.db)" = $((before + 1)) ] || fail "sessions after SIGKILL: $(sessions a.db)"
stop
[ $((n + captured)) = "$(stored a.db)" ] || fail "after SIGKILL: $n + $captured, stored $(stored a.db)"
sound a.db "after SIGKILL and a start"
[ ! -s a.db.lock ] || fail "an orderly end leaves its name in the lock: $(cat a.db.lock)"

# ---- a locked database, a full disk: counts are kept until they can be written
: >daemon.err
WATCHDOG_USEC=200000 start --db=locked.db
until_true "samples" grown locked.db 0
python3 - "$PWD" <<'P' &
import os, sqlite3, sys, time
os.chdir(sys.argv[1])
db = sqlite3.connect("locked.db", timeout=60, isolation_level=None)
db.execute("BEGIN IMMEDIATE")
while "keeps it locked" not in open("daemon.err").read() and not os.path.exists("give-up"):
    time.sleep(0.05)
db.execute("ROLLBACK")
P
holder=$!
# It waits for the lock without a watchdog message: to systemd it appears to hang.
until_true "silence while a write hangs" silent
until_true "the lock is noticed" grep -q 'locked.db: cannot .*: another process keeps it locked' daemon.err ||
	touch give-up
wait $holder
n=$(stored locked.db)
until_true "samples after the lock" grown locked.db "$n"
until_true "signs of life after the lock" more_lives $(($(lives) + 3))
stop
[ "$captured" = "$(stored locked.db)" ] || fail "locked: captured $captured, stored $(stored locked.db)"

if [ "${SERVICE_MOUNTS:-}" = own ] && mkdir disk && mount -t tmpfs -o size=2m none disk; then
	: >daemon.err
	printf 'source = %s\nrate = 997\ninterval = 0.1\n' "$source" >now.conf
	start --db=disk/d.db
	until_true "samples" grown disk/d.db 0
	cat /dev/zero >disk/filler 2>/dev/null
	# Modules that were not seen before need room.
	cp "$(command -v sha256sum)" worker
	is_full() {
		./worker "$MORPHD" "$BUILD/morph-optimize" >/dev/null
		head -c 64k /dev/urandom >>worker
		grep -q 'No space left on device' daemon.err
	}
	until_true "a full disk" is_full
	until_true "a full disk's status" heard '^STATUS=.*: No space left on device$'
	n=$(stored disk/d.db)
	before=$(so_far)
	# A reload that needs a flush does not wait: it is refused, and no sample is lost.
	reload "source = $source\nrate = 499\ninterval = 0.1\n"
	says daemon.err '^morphd: the old settings stay in force$'
	heard "+$before" "^READY=1 STATUS=$source, 997 Hz" || fail "a reload on a full disk: $(tail -n 2 heard)"
	before=$(so_far)
	rm disk/filler
	until_true "samples after a full disk" grown disk/d.db "$n"
	until_true "a good status" heard "+$before" "^STATUS=$source, "
	stop
	[ "$captured" = "$(stored disk/d.db)" ] ||
		fail "full disk: captured $captured, stored $(stored disk/d.db)"
	[ "$(sessions disk/d.db)" = 1 ] || fail "full disk: $(sessions disk/d.db) sessions"
	sound disk/d.db "after a full disk"
	umount disk
else
	echo "skip: a small disk needs a mount namespace"
fi

# ---- sampling is impossible: the service says what to do, waits, and starts when it can
if [ ! -e /dev/morphmon ] && ${CC:-gcc} -O1 -D_GNU_SOURCE -shared -fPIC -o noevents.so "$root/tests/e2e/morphd/noevents.c" &&
	! NOEVENTS=$PWD/allowed LD_PRELOAD=$PWD/noevents.so "$MORPHD" --version 2>&1 | grep -q "ASan runtime"; then
	# without_events OPTION...: start morphd without the right to sample
	without_events() {
		NOTIFY_SOCKET=$PWD/socket NOEVENTS=$PWD/allowed LD_PRELOAD=$PWD/noevents.so \
			"$MORPHD" --config=now.conf "$@" 2>>daemon.err &
		daemon=$!
	}
	printf 'rate = 199\ninterval = 0.1\n' >now.conf
	: >daemon.err
	without_events --db=w.db
	wait $daemon
	[ $? = 1 ] || fail "without --wait: another status than 1"
	daemon=
	tail -n 1 daemon.err | grep -q '^morphd: sampling .* not allowed\|^morphd: .*perf_event_open' ||
		fail "without --wait: $(cat daemon.err)"
	# A service that ends while it waits has not failed.
	: >daemon.err
	before=$(so_far)
	without_events --db=w.db --wait
	until_true "the reason" heard "+$before" '^READY=1 STATUS=not collecting: sampling .*not allowed' || exit 1
	says daemon.err '^morphd: not collecting: sampling .*not allowed'
	says daemon.err '^morphd: collecting starts by itself once it is possible$'
	stop
	[ "$(grep -c 'not collecting' daemon.err)" = 1 ] || fail "the reason is not said once: $(cat daemon.err)"
	# While it waits it is alive and accepts reloads. It collects as
	# soon as the kernel allows it.
	: >daemon.err
	before=$(so_far)
	n=$(lives)
	WATCHDOG_USEC=200000 without_events --db=w.db --wait
	until_true "the reason" heard "+$before" '^READY=1 STATUS=not collecting: ' || exit 1
	until_true "signs of life while it waits" more_lives $((n + 3))
	reload 'rate = 197\ninterval = 0.1\n'
	says daemon.err '^morphd: now.conf: read again$'
	heard "+$before" '^READY=1 STATUS=[a-z]*, ' && fail "it collects without events"
	[ "$(stored w.db)" = 0 ] || fail "samples without events"
	touch allowed
	until_true "the service starts by itself" heard "+$before" '^READY=1 STATUS=[a-z]*, 197 Hz: '
	until_true "samples, once they are allowed" grown w.db 0
	stop
	[ "$captured" = "$(stored w.db)" ] || fail "after the wait: captured $captured, stored $(stored w.db)"
	# A reload names a source that cannot be opened, while the old one cannot be opened either.
	: >daemon.err
	start_with() {
		before=$(so_far)
		without_events --db=w.db --wait
		until_true "READY=1" heard "+$before" '^READY=1 STATUS=[a-z]*, '
	}
	start_with
	rm allowed
	before=$(so_far)
	reload 'rate = 211\ninterval = 0.1\n'
	heard "+$before" '^READY=1 STATUS=not collecting: ' || fail "no source is left: $(tail -n 3 heard)"
	touch allowed
	until_true "and the service goes on" heard "+$before" '^READY=1 STATUS=[a-z]*, 1*[0-9]* Hz: '
	n=$(stored w.db)
	until_true "samples again" grown w.db "$n"
	stop
	sound w.db "after waits"
else
	echo "skip: sampling cannot be forbidden for a while here"
fi

# ---- only the unit's user and capabilities
if command -v setpriv >/dev/null; then
	unit=$root/daemon/morphd/morphd.service
	caps=$(sed -n 's/^AmbientCapabilities=//p' "$unit" | tr A-Z a-z | sed 's/cap_//g; s/^/+/; s/ /,+/g')
	[ "$(sed -n 's/^AmbientCapabilities=//p' "$unit")" = "$(sed -n 's/^CapabilityBoundingSet=//p' "$unit")" ] ||
		fail "the unit's ambient and bounding capabilities differ"
	mkdir state && chown 64999:64999 state
	# Files that root makes there belong to the service.
	"$MORPHD" run --registers=no --db=state/morph.db -- true 2>err.txt || fail "root in the service's directory: $(cat err.txt)"
	[ -z "$(find state ! -user 64999)" ] || fail "root's in the service's directory: $(ls -ln state)"
	: >daemon.err
	printf 'interval = 0.1\n' >now.conf
	before=$(so_far)
	NOTIFY_SOCKET=$PWD/socket MORPH_DB=$PWD/state/morph.db setpriv --reuid=64999 --regid=64999 \
		--clear-groups --no-new-privs --bounding-set="-all,$caps" --inh-caps="-all,$caps" \
		--ambient-caps="-all,$caps" "$MORPHD" --config=now.conf --json >json.txt 2>>daemon.err &
	daemon=$!
	chmod 777 socket
	# The daemon cannot write to the listener's socket, so ask the database.
	two_sessions() { [ "$(sessions state/morph.db)" = 2 ]; }
	until_true "a session of the unit's user" two_sessions
	# A build-id of its own: no other process provides the same file.
	if ${CC:-gcc} -O1 -o gone -Wl,--build-id=0x0a0a0a0a0a0a0a0a "$root/tests/e2e/morphd/busy.c" -ldl -lpthread; then
		./gone gone 60000 gone &
		gone=$!
		while kill -0 $gone && kill -0 $daemon; do
			! ask state/morph.db "SELECT hex(build_id) FROM module" | grep -qx 0A0A0A0A0A0A0A0A || break
			sleep 0.1
		done 2>/dev/null
		kill $gone
		wait $gone 2>/dev/null
	else
		fail "busy.c does not build"
	fi
	n=$(stored state/morph.db)
	until_true "samples of the unit's user" grown state/morph.db "$n"
	in_kernel() {
		head -c 20M /dev/urandom >/dev/null
		ask state/morph.db "SELECT 1 FROM module WHERE kind = 1 LIMIT 1" | grep -q 1
	}
	until_true "the unit's user sees something of the kernel" in_kernel
	# It cannot send messages to a socket that only root may write to.
	kill -TERM $daemon
	wait $daemon || fail "the unit's user: status $?: $(cat daemon.err)"
	daemon=
	[ "$(jq .attributed json.txt)" -gt 0 ] || fail "the unit's user attributes nothing: $(cat json.txt)"
	ask state/morph.db "SELECT hex(build_id) FROM module" | grep -qx 0A0A0A0A0A0A0A0A ||
		fail "the unit's user did not reach a deleted file"
	[ "$(ask state/morph.db "SELECT count(DISTINCT collector) FROM session")" = 1 ] ||
		fail "root collects with another source than the unit's user: $(cat daemon.err)"
	sound state/morph.db "of the unit's user"
	[ -z "$(find state ! -user 64999)" ] || fail "files of others: $(ls -ln state)"
else
	echo "setpriv is missing: the unit's user was not tried"
fi
finish
