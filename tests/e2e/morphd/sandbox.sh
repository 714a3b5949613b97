#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone, and readers are stopped and killed
# alone: it samples
# morphd reads unknown files in processes without rights. Tests the rights of these readers,
# malformed files, and readers that are stopped, killed, or cannot be started. No samples are lost,
# and none goes to a wrong file.
# Registers are left out: they would take a reader of their own.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
cd "$TMPDIR" || exit 1
sampling
source=${sources# }
source=${source%% *}
CC=${CC:-gcc}
$CC -O1 -o busy "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
$CC -O1 -o other -Wl,--build-id=0x3801020304050607 "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
$CC -o deny "$root/tests/e2e/morphd/deny.c" || exit 1

samples() { # DB FILE: samples of the module with FILE's build-id
	sqlite3 -readonly "$1" "SELECT coalesce(sum(nr_samples), 0) FROM bucket b JOIN module m
		ON b.module = m.key WHERE hex(build_id) = '$(readelf -n "$2" 2> /dev/null |
		sed -n 's/.*Build ID: //p' | tr a-f A-F)'"
}
adds_up() { # WHAT
	jq -e '.emitted == .attributed + .unattributed + .lost and .emitted > 0' out > /dev/null ||
		fail "$1: samples do not add up: $(head -c 300 out)"
}
unreadable() { jq '.reasons.unreadable' out; }

# run COMMAND...: sample the command; leaves db, out, err
run() {
	rm -f db*
	"$MORPHD" run --registers=no --source="$source" --rate 4000 --db db --json -- "$@" > out 2> err ||
		fail "$*: exit $?: $(cat err)"
}

# Machines give different numbers of samples; find an $ms of CPU time that gives hundreds.
export ms
for ms in 200 1000 5000; do
	run ./busy spin $ms
	[ "$(samples db busy)" -lt 400 ] || break
done

# start COMMAND...: the same in the background. Sets $pid; sets $reader once
# a reader without rights exists.
start() {
	rm -f db* go begun
	"$@" > out 2> err &
	pid=$!
	find_reader
}
find_reader() {
	reader=
	until reader=$(pgrep -n -P $pid -x morphd-reader); do
		kill -0 $pid 2> /dev/null || { fail "no reader: $(cat err)"; return 1; }
		sleep 0.02
	done
	# The reader has its name before it has given up the last of its rights.
	awaits '[ "$(field "$reader" Seccomp)" = 2 ] || [ ! -e "/proc/$reader" ]'
}
finish_run() { wait $pid || fail "$1: exit $?: $(cat err)"; }
# The sampled shell runs $1 and, once the file "go" exists, $2.
cat > two.sh <<'SH'
: > begun
$1
until [ -e go ]; do sleep 0.02; done
$2
SH

field() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; }
# no_rights PID UID: check the rights of the reader
no_rights() {
	local set
	for set in CapInh CapPrm CapEff CapAmb; do
		[ "$(field "$1" $set)" = 0000000000000000 ] || fail "reader: $set $(field "$1" $set)"
	done
	[ "$(field "$1" NoNewPrivs)" = 1 ] || fail "reader: no_new_privs"
	[ "$(field "$1" Seccomp)" = 2 ] || fail "reader: seccomp $(field "$1" Seccomp)"
	[ "$(field "$1" Uid | cut -f 2)" = "$2" ] || fail "reader: user $(field "$1" Uid)"
	# It has no terminal, and gets no signals from one.
	[ "$(ps -o sid= -p "$1" | tr -d ' ')" = "$1" ] || fail "reader: session"
	# It has more descriptors open while it reads.
	[ $EUID = 0 ] || return
	set=$1
	awaits '[ "$(ls "/proc/$set/fd" | wc -l)" = 4 ]' || fail "reader: $(ls -l "/proc/$1/fd")"
}

# The reader's rights, and that it ends with morphd.
start "$MORPHD" run --registers=no --source="$source" --rate 4000 --db db --json -- \
	bash two.sh "./busy spin $ms" "./other spin $ms"
# The reader runs as another user if morphd may switch to one and kill it:
# CAP_KILL, CAP_SETGID, CAP_SETUID.
user=$EUID
[ $((0x$(field self CapEff) & 0xe0)) = $((0xe0)) ] && [ "$(awk '{ print $3 }' /proc/self/uid_map)" -gt 65534 ] &&
	user=65534
no_rights "$reader" $user
kill -TERM "$reader" # the reader must ignore it
touch go
finish_run "plain"
adds_up "plain"
[ "$(unreadable)" = 0 ] || fail "plain: $(unreadable) unreadable: $(cat err)"
[ "$(samples db busy)" -gt 100 ] && [ "$(samples db other)" -gt 100 ] || fail "plain: no samples"
[ ! -e "/proc/$reader" ] || fail "the reader is still there"
echo "a reader without rights: $(samples db busy) and $(samples db other) samples"

# A killed reader is replaced.
start "$MORPHD" run --registers=no --source="$source" --rate 4000 --db db --json -- \
	bash two.sh "./busy spin $ms" "./other spin $ms"
until [ -e begun ] || ! kill -0 $pid 2> /dev/null; do sleep 0.02; done
kill -KILL "$reader"
touch go
finish_run "killed"
adds_up "killed"
[ "$(samples db other)" -gt 100 ] || fail "killed: $(samples db other) samples: $(cat err)"

# morphd gives up a stopped reader and its file after a while; the next file has a new reader.
cat > late.sh <<'SH'
sleep 0.02
./other spin $ms
until [ -e go ]; do sleep 0.02; done
./late spin $ms
until [ -e again ]; do sleep 0.02; done
./busy spin $ms
SH
$CC -O1 -o late -Wl,--build-id=0x3807060504030201 "$root/tests/e2e/morphd/busy.c" -ldl -lpthread || exit 1
rm -f again
start "$MORPHD" run --registers=no --source="$source" --rate 4000 --interval 0.1 --db db --json -- bash late.sh
# When this sample is seen, all files mapped earlier have been read.
until [ "$(samples db other 2> /dev/null || echo 0)" -gt 0 ] || ! kill -0 $pid 2> /dev/null; do
	sleep 0.1
done
kill -STOP "$reader"
touch go
until grep -q "took too long" err || ! kill -0 $pid 2> /dev/null; do sleep 0.1; done
touch again
finish_run "stopped"
adds_up "stopped"
grep -q "^morphd: .*/late: reading it took too long$" err || fail "stopped: $(cat err)"
[ "$(samples db late)" = 0 ] || fail "stopped: samples of a file that nobody has read"
[ "$(unreadable)" -gt 100 ] || fail "stopped: $(unreadable) unreadable"
[ "$(samples db busy)" -gt 100 ] || fail "stopped: $(samples db busy) samples: $(cat err)"
[ ! -e "/proc/$reader" ] || fail "the stopped reader is still there"
echo "a stopped reader: $(unreadable) samples unreadable, $(samples db busy) of the next file"

# If morphd is killed, the reader ends, even if it is stopped.
start "$MORPHD" run --registers=no --source="$source" --db db -- sleep 60
child=$(pgrep -P $pid -x sleep)
kill -STOP "$reader"
kill -KILL $pid
{ wait $pid; } 2> /dev/null
[ -z "$child" ] || kill "$child"
while [ -e "/proc/$reader" ] && [ "$(field "$reader" State | cut -c 1)" != Z ]; do sleep 0.05; done

# Files that run, but that a reader of ELF files must refuse.
patch() { # FILE OFFSET BYTES: a copy of busy
	rm -f "$1" && cp busy "$1" &&
		printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
patch no-sections 40 '\377\377\377\377\377\377\377\177'  # e_shoff
patch many-sections 60 '\377\376'                        # e_shnum
patch strange-section 58 '\001'                          # e_shentsize
for f in no-sections many-sections strange-section; do
	run ./$f spin $ms
	adds_up $f
	[ "$(unreadable)" -gt 100 ] || fail "$f: $(unreadable) samples unreadable"
	[ "$(samples db busy)" = 0 ] || fail "$f: samples of another file"
	! grep -q "process that read it" err || fail "$f: $(cat err)"
done

# A pipe in place of a program does not block the reader.
cat > pipe.sh <<'SH'
rm -f piped && cp busy piped
./piped spin 300 &
while kill -0 $! && [ "$(cat /proc/$!/comm)" != piped ]; do :; done
rm piped && mkfifo piped
wait
SH
run bash pipe.sh
adds_up "a pipe"

# Many files at once.
mkdir -p many
for i in $(seq 100); do cp busy "many/f$i"; done
run bash -c 'for f in many/*; do ./$f spin 2 & done; wait'
adds_up "many files"
[ "$(unreadable)" = 0 ] || fail "many files: $(unreadable) unreadable: $(cat err)"
[ "$(sqlite3 -readonly db "SELECT count(*) FROM module WHERE path LIKE '%/many/%'")" = 1 ] ||
	fail "copies of one file are not one module"

# Without a sandbox, root refuses to run; other users continue. 126 is capset.
if [ $EUID = 0 ]; then
	rm -f ran db*
	./deny -126 "$MORPHD" run --registers=no --source="$source" --db db -- touch ran 2> err &&
		fail "root reads files without a sandbox"
	[ "$(cat err)" = "morphd: no sandbox for reading files: capabilities: Permission denied" ] ||
		fail "without a sandbox: $(cat err)"
	[ ! -e ran ] || fail "a command ran that could not be sampled"
	# Replaying a recording needs no sandbox.
	"$MORPHD" run --registers=no --source="$source" --record rec -- true 2> err || fail "$(cat err)"
	./deny -126 "$MORPHD" --input rec --db db 2> err || fail "replay: $(cat err)"
	if command -v setpriv > /dev/null; then
		# As in the unit: a separate user, with capabilities that the reader must not have.
		caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$root/daemon/morphd/morphd.service" |
			tr A-Z a-z | sed 's/cap_//g; s/^/+/; s/ /,+/g')
		unit=(setpriv --reuid=1234 --regid=1234 --clear-groups "--bounding-set=-all,$caps"
			"--inh-caps=-all,$caps" "--ambient-caps=-all,$caps")
		mkdir -p unit && chown 1234:1234 unit
		if start "${unit[@]}" "$MORPHD" --rate 100 --db unit/db; then
			[ "$(field $pid CapEff)" != 0000000000000000 ] || fail "the unit has no capabilities"
			no_rights "$reader" 1234
			kill -TERM $pid
			finish_run "with the unit's capabilities"
			[ ! -e "/proc/$reader" ] || fail "the unit's reader is still there"
			rm -f unit/db*
			"${unit[@]}" ./deny -126 "$MORPHD" --rate 100 --db unit/db 2> err &&
				fail "with capabilities files are read without a sandbox"
			grep -q "no sandbox for reading files: capabilities" err || fail "$(cat err)"
		fi
	else
		echo "skip: no setpriv"
	fi
fi
if [ $EUID = 0 ] && command -v setpriv > /dev/null &&
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	user=$(mktemp -d /tmp/morph-user.XXXXXX) || exit 1
	at_exit 'rm -rf "$user"'
	chmod 777 "$user" && cp "$MORPHD" "$BUILD/morph-stats" deny busy "$user/" && cd "$user" || exit 1
	as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	as_user ./morphd run --registers=no --source=perf --db db --json -- ./busy spin $ms > out 2> err ||
		grep -q 'perf_event_mlock_kb is used up' err || fail "an ordinary user: $(cat err)"
	if ! grep -q 'perf_event_mlock_kb is used up' err; then
		[ "$(samples db busy)" -gt 20 ] || fail "an ordinary user: $(cat err)"
		! grep -q sandbox err || fail "an ordinary user has no sandbox: $(cat err)"
		rm -f db*
		as_user ./deny -126 ./morphd run --registers=no --source=perf --db db --json -- ./busy spin $ms \
			> out 2> err || fail "an ordinary user without a sandbox: $(cat err)"
		grep -q "files are read without a sandbox: capabilities: Permission denied" err ||
			fail "not said: $(cat err)"
		[ "$(samples db busy)" -gt 20 ] || fail "an ordinary user without a sandbox: no samples"
		./morph-stats status --db db | grep -q "without a sandbox: capabilities" ||
			fail "status does not say it: $(./morph-stats status --db db)"
	fi
fi
[ $nr_failed = 0 ] && echo ok
exit $((nr_failed > 0))
