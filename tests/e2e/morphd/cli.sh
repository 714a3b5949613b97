#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# morphd's command line: exit statuses, messages that name the file and the reason, signals, the
# lock on a database, a full disk, and the message for a user without permission to sample.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1

# expect STATUS MESSAGE COMMAND...: the exit status, and a part of the text on stderr
expect() {
	local status=$1 message=$2 ret
	shift 2
	"$@" > out 2> err < /dev/null
	ret=$?
	[ $ret = "$status" ] || fail "$*: exit $ret, $status expected: $(head -n 2 err)"
	grep -qF -- "$message" err || fail "$*: \"$message\" expected: $(head -n 2 err)"
}

# The session exists once sampling has begun.
samples_from() { [ -n "$(sqlite3 -readonly "$1" "SELECT key FROM session" 2> /dev/null)" ]; }

# Usage.
expect 2 "no-such" "$MORPHD" --no-such
expect 2 "no command given" "$MORPHD" run
expect 2 "not kmod, bpf, perf, replay or auto" "$MORPHD" --source=kmodd
expect 2 "not kmod, bpf, perf, replay or auto" "$MORPHD" run --source=kmodd -- true
expect 2 "cannot replay a recording" "$MORPHD" run --source=replay -- true
expect 2 "--input is for --source=replay" "$MORPHD" --source=bpf --input text
expect 2 "not a whole number from" "$MORPHD" --rate=fast
expect 2 "not a number from" "$MORPHD" --interval=0
expect 2 "needs --input FILE" "$MORPHD" --source=replay
expect 2 "unexpected argument" "$MORPHD" stray

# Files of the wrong kind.
expect 1 "none: cannot open: No such file or directory" "$MORPHD" --input none --db db
echo "not a recording at all" > text
expect 1 "text: not a Morph recording" "$MORPHD" --input text --db db
expect 1 ".: not a regular file" "$MORPHD" --input . --db db
expect 1 "/no/where/db: No such file or directory" \
	"$MORPHD" --input text --db /no/where/db
head -c 4096 /dev/urandom > junk
expect 1 "junk:" "$MORPHD" --input text --db junk

CC=${CC:-gcc}
$CC -o deny "$root/tests/e2e/morphd/deny.c" || exit 1
$CC -O1 -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1

# Without permission to sample: one line says what to do, and the command does not run.
allowed_at() { # N COMMAND...: with kernel.perf_event_paranoid showing N, in a new namespace
	local n=$1
	shift
	echo "$n" > paranoid
	unshare -m sh -c 'mount --bind paranoid /proc/sys/kernel/perf_event_paranoid && exec "$@"' - "$@"
}
if [ $EUID = 0 ] && unshare -m true 2> /dev/null; then
	expect 1 'sysctl kernel.perf_event_paranoid=2' allowed_at 3 ./deny "$MORPHD" run --db db -- touch ran
	[ "$(wc -l < err)" = 1 ] || fail "more than one line: $(cat err)"
	grep -q 'is 3' err || fail "the value is not named: $(cat err)"
	expect 1 'a container or sandbox blocks perf_event_open' \
		allowed_at 2 ./deny "$MORPHD" run --db db -- touch ran
	expect 1 'sysctl kernel.perf_event_paranoid=0' allowed_at 3 ./deny "$MORPHD" --db db
	# The message for a service with CAP_PERFMON, but without all of root's rights.
	! command -v setpriv > /dev/null ||
		expect 1 'sysctl kernel.perf_event_paranoid=2' allowed_at 3 ./deny setpriv \
			--bounding-set=-all,+perfmon --inh-caps=-all "$MORPHD" --source=perf --db db
	[ ! -e ran ] || fail "a command ran that could not be sampled"
else
	echo "skip: showing another kernel.perf_event_paranoid needs root"
fi

"$MORPHD" run --record probe -- true 2> err || {
	cat err
	[ $nr_failed = 0 ] || exit 1
	echo "no sampling on this machine: $(head -n 1 err)"
	exit 77
}

# The command's own status, output and input.
"$MORPHD" run --db db -- sh -c 'exit 7' 2> err
[ $? = 7 ] || fail "exit status of the command"
grep -q '^morphd: captured [0-9]* samples of [0-9]* modules, 0 lost -> db$' err || fail "$(cat err)"
"$MORPHD" run --db db -- sh -c 'kill -KILL $$' 2> err
[ $? = 137 ] || fail "exit status of a killed command"
[ "$(echo hello | "$MORPHD" run --db db -- cat 2> err)" = hello ] || fail "input and output"
[ "$("$MORPHD" run --db db -- printf '%s,' --db x --help 2> err)" = "--db,x,--help," ] ||
	fail "options behind the command are the command's"
[ "$("$MORPHD" run --db db printf '%s,' --rate 2> err)" = "--rate," ] || fail "without --"
expect 127 "no-such-program: No such file or directory" "$MORPHD" run --db db -- no-such-program
expect 126 "/etc: Permission denied" "$MORPHD" run --db db -- /etc

# The default database, and $MORPH_DB.
MORPH_DB=$PWD/named.db "$MORPHD" run -- true 2> err && [ -s named.db ] || fail "MORPH_DB: $(cat err)"

# Signals go to the command.
cat > trap.sh <<'SH'
trap 'exit 42' TERM
trap 'exit 43' INT
echo $$ > ready
while :; do sleep 0.02; done
SH
rm -f ready
"$MORPHD" run --db db -- bash trap.sh 2> err &
pid=$!
until [ -s ready ]; do kill -0 $pid || break; sleep 0.05; done
kill -TERM $pid
wait $pid
[ $? = 42 ] || fail "SIGTERM was not passed on"

# A daemon: SIGTERM stores the samples and is no failure. No other process can write meanwhile.
if [ $EUID = 0 ]; then
	"$MORPHD" --source=perf --rate 1000 --db=daemon.db --record daemon.rec 2> daemon.err &
	pid=$!
	until [ -s daemon.rec ] && [ -s daemon.db ]; do kill -0 $pid || break; sleep 0.05; done
	expect 1 "daemon.db: in use by another morphd, process $pid; name another with --db" \
		"$MORPHD" --db daemon.db --input daemon.rec
	expect 1 "daemon.db: in use by another morphd" "$MORPHD" run --db daemon.db -- true
	"$BUILD/morphd" run --db other.db -- ./busy spin 1000 2> err ||
		fail "a command beside the daemon: $(cat err)"
	kill -HUP $pid
	kill -TERM $pid
	wait $pid
	[ $? = 0 ] || fail "SIGTERM: exit $?, $(cat daemon.err)"
	n=$(sqlite3 -readonly daemon.db "SELECT sum(nr) FROM ledger WHERE what = 'attributed'")
	[ "${n:-0}" -gt 0 ] || fail "nothing was written at SIGTERM"
	# The same for the bpf source: the database does not depend on the source.
	if "$MORPHD" run --source=bpf --record probe.bpf -- true 2> err; then
		"$MORPHD" --source=bpf --rate 1000 --db=bpf.db 2> daemon.err &
		pid=$!
		until samples_from bpf.db; do kill -0 $pid || break; sleep 0.05; done
		./busy spin 1000
		kill -TERM $pid
		wait $pid
		[ $? = 0 ] || fail "SIGTERM to bpf: exit $?, $(cat daemon.err)"
		n=$(sqlite3 -readonly bpf.db "SELECT sum(nr) FROM ledger WHERE what = 'attributed'")
		[ "${n:-0}" -gt 0 ] || fail "bpf: nothing was written at SIGTERM"
	else
		echo "skip: bpf: $(head -n 1 err)"
	fi
	# A killed daemon leaves a database that opens, and no lock.
	"$MORPHD" --source=perf --db=daemon.db --interval 0.05 2> daemon.err &
	pid=$!
	# Kill it in the middle of its work if possible.
	for _ in {1..100}; do
		kill -0 $pid 2> /dev/null || break
		[ "$(sqlite3 -readonly daemon.db "SELECT sum(nr) FROM ledger WHERE what = 'attributed'")" = "$n" ] ||
			break
		./busy spin 20
	done
	kill -KILL $pid
	wait $pid 2> /dev/null
	expect 0 "captured" "$MORPHD" --db daemon.db --input daemon.rec
	[ "$(sqlite3 -readonly daemon.db 'PRAGMA integrity_check')" = ok ] || fail "integrity"
	# With only the capabilities of the systemd unit.
	caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$root/daemon/morphd/morphd.service" | tr A-Z a-z |
		sed 's/cap_//g; s/^/+/; s/ /,+/g')
	if command -v setpriv > /dev/null; then
		setpriv --bounding-set="-all,$caps" --inh-caps=-all "$MORPHD" --db caps.db --interval 0.1 --json \
			> caps.out 2> caps.err &
		pid=$!
		until samples_from caps.db; do kill -0 $pid || break; sleep 0.05; done
		# A build-id of its own: no other process provides the same file.
		$CC -O1 -o gone -Wl,--build-id=0x0909090909090909 "$root/tests/e2e/morphd/busy.c" -ldl -lpthread
		./gone gone 60000 gone &
		gone=$!
		while kill -0 $gone 2> /dev/null && kill -0 $pid; do
			! sqlite3 -readonly caps.db "SELECT hex(build_id) FROM module" | grep -qx 0909090909090909 ||
				break
			sleep 0.1
		done
		kill $gone 2> /dev/null
		wait $gone 2> /dev/null
		kill -TERM $pid
		wait $pid || fail "with the unit's capabilities: $(cat caps.err)"
		[ "$(jq .attributed caps.out)" -gt 0 ] || fail "nothing attributed with the unit's capabilities"
		sqlite3 -readonly caps.db "SELECT hex(build_id) FROM module" | grep -qx 0909090909090909 ||
			fail "a deleted file was not reached with the unit's capabilities"
		# The unit's capabilities allow the same best source as root's.
		"$MORPHD" run --registers=no --db best.db -- true 2> err
		best=$(sqlite3 -readonly best.db "SELECT collector FROM session")
		[ "$(sqlite3 -readonly caps.db "SELECT collector FROM session")" = "$best" ] ||
			fail "root collects with $best, the unit's capabilities do not: $(sqlite3 -readonly caps.db "SELECT collector, why FROM session"), $(cat err)"
	fi
else
	echo "skip: sampling the whole system needs root"
fi

# Full disks.
expect 1 "/dev/full: cannot write: No space left on device" \
	"$MORPHD" --input probe --record /dev/full
if [ $EUID = 0 ] && unshare -m true 2> /dev/null; then
	mkdir -p small
	cat > small.sh <<'SH'
mount -t tmpfs -o size=48k none small || exit 99
head -c 40k /dev/zero > small/filler
exec "$@"
SH
	expect 1 "No space left on device" unshare -m sh small.sh "$MORPHD" --input probe --db small/db
fi

# A user without rights samples user code only.
if [ $EUID = 0 ] && command -v setpriv > /dev/null &&
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	# Other users cannot enter the tests' scratch directory, but they can enter this one.
	user=$(mktemp -d /tmp/morph-user.XXXXXX) || exit 1
	at_exit 'rm -rf "$user"'
	chmod 777 "$user" && cp "$MORPHD" "$user/"
	for _ in {1..20}; do
		(cd "$user" && setpriv --reuid=65534 --regid=65534 --clear-groups \
			env -u MORPH_DB HOME="$user" XDG_STATE_HOME="$user/state" ./morphd run -- \
			sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done') 2> err || {
			fail "as an ordinary user: $(cat err)"
			break
		}
		grep -qF "$user/state/morph/morph.db" err || fail "the default database: $(cat err)"
		n=$(sqlite3 -readonly "$user/state/morph/morph.db" \
			"SELECT sum(nr) FROM ledger WHERE what = 'attributed'")
		[ "${n:-0}" -le 20 ] || break
	done
	[ "${n:-0}" -gt 20 ] || fail "an ordinary user got $n samples"
fi
[ $nr_failed = 0 ] && echo ok
exit $((nr_failed > 0))
