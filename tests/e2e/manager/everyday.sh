#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker with `counting = yes': everyday use of two users is counted and decides, with no command in any rule.
# Whatever happens meanwhile, the original, or what was proved, is in place, and the program prints the same.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3 setpriv
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, for everyday use of two users"
	exit 77
}
manager_scratch everyday
everyday_policy() {
	printf '%s\n' "mode = adopt" "only = $dir/prog" "share = 50%" "$@" >etc/morph.conf
}
everyday_policy "counting = yes" "cost = 100%"
want=$(./prog 777)

# Everyday use: short processes of root and of nobody, until the file `stop' is there.
use() {
	rm -f stop wrong
	for user in 0 65534; do
		while [ ! -e stop ]; do
			[ "$(setpriv --reuid="$user" --clear-groups ./prog 777)" = "$want" ] || touch wrong
			setpriv --reuid="$user" --clear-groups ./prog 3000000 >/dev/null || touch wrong
		done &
	done
}
end_use() {
	touch stop
	wait
	[ -e wrong ] && fail "$1: a process failed, or printed something else"
}
is() { # FILE FILE WHAT
	cmp -s "$1" "$2" || fail "$3: $1 is not $2"
}
is_proved() { # WHAT: what lies at the path is the original, or verifies
	cmp -s prog original || "$BUILD/morph-optimize" verify --report=none --kind=layout,edges,edges+threads,meter original prog ||
		fail "$1: what is in place does not verify"
}

# ---- a whole round
use
begin_work
wait_for counting "counting"
wait_for trying "trying"
[ -e state ] && [ "$(db "SELECT verdict FROM history WHERE step = 'counted'")" = done ] ||
	fail "it was not counted: $(db "SELECT reason FROM history WHERE step = 'counted'")"
[ "$(db "SELECT count(*) FROM history WHERE step = 'write' AND verdict = 'done'")" = 1 ] || fail "it was not written"
sleep 1
is_proved "in a trial"

# ---- the two versions take turns as the same two files: nothing is copied
wait_for_file() { # FILE: until this one is at the path
	awaits "[ \"\$(stat -c %i prog)\" = $1 ]" || fail "turns: the file $1 did not come back"
}
for turn in 1 2; do
	# In the middle of a swap, there is none, or it is the same file.
	awaits 'file=$(stat -c %i .morph-kept.* 2>/dev/null) && [ "$file" != "$(stat -c %i prog)" ]' ||
		fail "turns: no version is kept beside prog"
	wait_for_file "$file"
done
is_proved "in turns"

# ---- told to stop: the original is back
kill -TERM "$worker_pid" 2>/dev/null
wait "$worker_pid"
worker_pid=
is prog original "stopped"
state_is trying "stopped"
[ -z "$(find . -maxdepth 1 -name '.morph-*')" ] || fail "stopped: left: $(find . -maxdepth 1 -name '.morph-*')"

# ---- killed: the next start goes on; nothing but proved versions is ever in place
begin_work
sleep 1.5
kill -KILL "$worker_pid" 2>/dev/null
wait "$worker_pid" 2>/dev/null
is_proved "killed"
begin_work
sleep 2
state_is trying "after a kill"

# ---- the file is upgraded in the middle of a block
cp newer prog.new && mv prog.new prog
tries=0
until [ "$(db "SELECT count(*) FROM history WHERE step = 'upgrade'")" = 1 ] || [ $((++tries)) -gt 400 ]; do sleep 0.05; done
kill -TERM "$worker_pid" 2>/dev/null
wait "$worker_pid"
is prog newer "upgraded"
[ "$(db "SELECT round FROM job")" = 2 ] || fail "upgraded: no new round"
end_use "upgraded"

# ---- a version was changed where it is stored, and its time set back: it is never put in place
forget
use
begin_work
wait_for trying "a changed version"
kill -KILL "$worker_pid"
wait "$worker_pid" 2>/dev/null
# Without a meter, the version that may stay is tried.
stored=$(ls state/*/metered-new 2>/dev/null || echo state/*/output)
cp -p "$stored" was
for byte in x y; do
	! cmp -s was "$stored" || printf $byte | dd of="$stored" bs=1 seek=$(($(stat -c %s was) / 2)) conv=notrunc status=none
done
touch -r was "$stored"
begin_work
wait_for failed "a changed version"
kill -TERM "$worker_pid" 2>/dev/null
wait "$worker_pid"
is prog original "a changed version"
end_use "a changed version"

# ---- the original is put back by hand while the version that counts is there: the round goes on
forget
use
begin_work
wait_for counting "counting, for a hand"
tries=0
while cmp -s prog original && [ $((++tries)) -lt 1200 ]; do sleep 0.02; done
command_ends 0 "by hand" "$BUILD/morph-optimize" restore --report=none --backup-dir=backup prog
wait_for trying "by hand"
kill -TERM "$worker_pid"
wait "$worker_pid"
is prog original "by hand"
end_use "by hand"

# ---- morph undo, or morph off, was killed after it had noted what it was asked: the next start puts the original back
mkdir undoer
cp "$BUILD/morph" undoer/
printf '#!/bin/sh\nkill -KILL "$PPID"\n' >undoer/morph-optimize
chmod 755 undoer/morph-optimize
forget
use
begin_work
wait_for counting "counting, to be undone"
tries=0
while cmp -s prog original && [ $((++tries)) -lt 3000 ]; do sleep 0.02; done
kill -KILL "$worker_pid"
wait "$worker_pid" 2>/dev/null
cmp -s prog original && fail "to be undone: no version is in place"
command_ends 0 "the page" "$BUILD/morph" --db=db --backup-dir=backup
says out.txt '^Optimised: nothing yet' "the page, while a version that counts is in place"
says out.txt '^Next, by itself: .*/prog, counts at times' "the page, while a version that counts is in place"
command_ends 137 "to be undone" undoer/morph --db=db --backup-dir=backup undo "$dir/prog"
state_is undoing "to be undone"
cmp -s prog original && fail "to be undone: it was restored already"
work 0 "to be undone" --now
is prog original "to be undone"
state_is undone "to be undone"
[ "$(db "SELECT verdict FROM history WHERE step = 'restore'")" = done ] || fail "to be undone: $(db "SELECT step, verdict FROM history")"
end_use "to be undone"

# ---- counting is not permitted any more
forget
use
begin_work
wait_for counting "counting again"
kill -KILL "$worker_pid" 2>/dev/null
wait "$worker_pid" 2>/dev/null
is_proved "killed while counting"
everyday_policy "counting = no"
work 0 "not permitted" --now
is prog original "not permitted"
state_is undone "not permitted"
end_use "not permitted"
find state -name "*.counts*" | grep -q . && fail "counts were left"

# ---- morph on, and morph off while a version is in place: off waits until the worker has ended
forget
printf '%s\n' "min-samples = 1000" "cost = 100%" >etc/morph.conf
export STATE_DIRECTORY=$dir/state
for moment in counting trying; do
	use
	command_ends 0 "on" "$BUILD/morph" --db=db --backup-dir=backup on --policy=etc --only="$dir/prog"
	begin_work
	wait_for $moment "on: $moment"
	tries=0
	while cmp -s prog original && [ $((++tries)) -lt 3000 ]; do sleep 0.02; done
	[ $tries -lt 3000 ] || fail "off, $moment: no version came into place"
	command_ends 0 "off, $moment" "$BUILD/morph" --db=db --backup-dir=backup off --policy=etc
	is prog original "off, $moment"
	awaits "! kill -0 $worker_pid 2>/dev/null" || fail "off, $moment: the worker still runs"
	wait "$worker_pid"
	is prog original "off, $moment, and the worker has ended"
	find state . -maxdepth 2 -name '*counting*' -o -name '*metered*' -o -name '.morph-*' | grep . &&
		fail "off, $moment: that was left"
	end_use "off, $moment"
done
unset STATE_DIRECTORY

# ---- without /sys the kernel cannot be asked, and the reason is not another one
forget
everyday_policy "counting = yes" "cost = 100%"
cat >without-sys <<END
mount -t tmpfs tmpfs /sys && exec "$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=state --backup-dir=backup --lab-pace=0.02 --now
END
command_ends 0 "without /sys" unshare -m sh without-sys
case "$(db "SELECT reason FROM history WHERE step = 'count'")" in
*"is /sys mounted"*) ;;
*) fail "without /sys: $(db "SELECT step, reason FROM history")" ;;
esac
case "$(db "SELECT detail FROM job")" in
*"everyday use could not decide"*) ;;
*) fail "without /sys: it is $(db "SELECT state, detail FROM job")" ;;
esac

# ---- a second name: no version is written that could not be put in place
forget
ln prog second
everyday_policy "counting = yes" "cost = 100%"
work 0 "two names" --now --lab-pace=0.02
[ "$(db "SELECT verdict FROM history WHERE step = 'count'")" = "by samples" ] || fail "two names: $(db "SELECT step, reason FROM history")"
rm second

# ---- a program that starts threads is counted as well: it has a set of counters for each
forget
cp original plain
cat >threads.c <<'END'
#include <pthread.h>
#define main work
#include "prog.c"
#undef main
static char **arguments;
static int number;
static void *begin(void *unused)
{
	work(number, arguments);
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t thread;

	number = argc;
	arguments = argv;
	return pthread_create(&thread, NULL, begin, NULL) || pthread_join(thread, NULL);
}
END
gcc -O2 -Wl,--emit-relocs -pthread -o original threads.c || fail "threads.c"
cp original prog.new && mv prog.new prog
profile prog 12000
use
begin_work
wait_for counting "counting threads"
wait_for trying "threads"
[ "$(db "SELECT verdict FROM history WHERE step = 'counted'")" = done ] ||
	fail "threads: $(db "SELECT reason FROM history WHERE step = 'counted'")"
is_proved "threads"
kill -TERM "$worker_pid"
wait "$worker_pid"
is prog original "threads"
end_use "threads"
mv plain original
cp original prog.new && mv prog.new prog
profile prog 12000

# ---- a library is not counted, and the reason says so
gcc -O2 -shared -fPIC -Wl,--emit-relocs,--build-id -o libprog.so prog.c || fail "libprog.so"
cp libprog.so libprog.was
samples_as_perf "$dir/libprog.so" 12000 hot >perf.text
"$BUILD/morph-stats" --db library.db import perf.text >/dev/null || fail "import: a library"
printf '%s\n' "mode = adopt" "only = $dir/libprog.so" "share = 50%" "counting = yes" >etc/morph.conf
command_ends 0 "a library" "$worker" --config=etc --db=library.db --state-dir=library --backup-dir=backup --now
said=$(sqlite3 library.db "SELECT state, detail, (SELECT count(*) FROM history WHERE step = 'count') FROM job")
case "$said" in
"advised|everyday use decides about libraries only in running processes"*"|0") ;;
*) fail "a library: $said" ;;
esac
is libprog.so libprog.was "a library"
# ---- one job's error does not end the others' turns
forget
{ cat prog.c; echo 'const char mark[] = "the second program";'; } >second.c
gcc -O2 -Wl,--emit-relocs -o second second.c || fail "second.c"
profile second 12000
printf '%s\n' "mode = adopt" "only = $dir/prog" "only = $dir/second" "share = 10%" "counting = yes" \
	"cost = 100%" >etc/morph.conf
use
begin_work
wait_for counting "two jobs"
awaits "[ \"\$(db \"SELECT state FROM job WHERE path = '$dir/second'\")\" = counting ]" || fail "two jobs: $(db "SELECT path, state FROM job")"
kill -KILL "$worker_pid"
wait "$worker_pid" 2>/dev/null
rm "$(grep -l "the second program" state/*/counting)" || fail "two jobs: no version that counts"
begin_work
wait_for trying "two jobs"
kill -0 "$worker_pid" || fail "two jobs: the worker has ended"
says err.txt "/second: .*it does not count" "two jobs"
kill -TERM "$worker_pid"
wait "$worker_pid"
is prog original "two jobs"
end_use "two jobs"
db "DELETE FROM job; DELETE FROM history"
rm second

# ---- nobody uses it: the round goes on with samples
forget
everyday_policy "counting = yes" "cost = 100%"
begin_work
wait_for advised "not used"
wait "$worker_pid"
is prog original "not used"
[ "$(db "SELECT verdict FROM history WHERE step = 'counted'")" = "by samples" ] || fail "not used: $(db "SELECT * FROM history")"
finish
