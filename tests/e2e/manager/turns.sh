#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Versions take turns at a program's path, and meanwhile something goes wrong, or is wanted otherwise: a swap fails behind
# its rename, processes of the new version crash, a user undoes it while another job's step goes on, the policy changes,
# processes of an earlier worker's versions go on to count. The original comes back, and nothing false is measured.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root, for the CPU time of processes"
	exit 77
}
ulimit -c 0
manager_scratch turns
pace=0.05
printf '%s\n' "mode = adopt" "only = $dir/prog" "share = 10%" "counting = yes" "cost = 100%" "min-samples = 1000" >etc/morph.conf
# A place that runs some ten thousand times a second, for the work meter.
cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) unsigned int hot(unsigned int x)
{
	for (int i = 0; i < 20000; i++)
		x = x & 64 ? x * 5 + 1 : (x >> 3) ^ (x * 9 + 7);
	return x;
}
int main(int argc, char **argv)
{
	unsigned int x = argc;
	for (int n = atoi(argv[1]) / 20000 + 1; n > 0; n--)
		x = hot(x);
	printf("%u\n", x);
	return 0;
}
END
gcc -O2 -Wl,--emit-relocs -o original prog.c || exit 1
cp original prog
rm -f db db-wal db-shm
profile prog 12000

# The worker's morph-optimize: with the file `fails', a version is put in place, and yet the call fails; what restores
# ./second waits for the file `go'.
rm worker/morph-optimize
cat >worker/morph-optimize <<END
#!/bin/sh
case "\$1 \$*" in "restore "*/second*)
	touch "$dir/waits"
	while [ ! -e "$dir/go" ] && [ -d "$dir" ]; do sleep 0.1; done ;;
esac
"$BUILD/morph-optimize" "\$@" || exit
case "\$1 \$*" in "adopt "*--proved*)
	[ ! -e "$dir/fails" ] || {
		echo "morph-optimize: the directory cannot be flushed" >&2
		exit 1
	} ;;
esac
END
chmod 755 worker/morph-optimize

use() { # everyday use, until the file `stop' is there
	while [ ! -e stop ]; do ./prog 30000000 >/dev/null || touch wrong; done
}
use &
at_exit "touch '$dir/stop'; wait; rm -rf '$dir'"
is_original() { # WHAT
	cmp -s prog original || fail "$1: the original is not in place"
}
ends() { # WHAT: the worker ends
	wait "$worker_pid"
	local got=$?
	[ $got = 0 ] || fail "$1: the worker's status is $got: $(tail -n 3 err.txt)"
	is_original "$1"
}

# ---- the version that counts is put in place, and the call fails
touch fails
begin_work
wait_for failed "the version that counts"
ends "the version that counts"
says err.txt 'could not be put in place: the directory cannot be flushed' "the version that counts"
rm fails

# ---- the number of trials cannot be read: no trial begins, since it would claim something false too often
rm -rf state backup
db "DELETE FROM job; DELETE FROM history"
mkdir state
echo damaged >state/trials
begin_work
wait_for verified "the number of trials"
wait "$worker_pid" && fail "the number of trials: the worker's status is 0"
state_is verified "the number of trials"
says err.txt 'state/trials: has no number of trials' "the number of trials"
is_original "the number of trials"
rm state/trials

# ---- from here on, each scene begins in the same trial
begin_work
wait_for trying "a trial"
kill -TERM "$worker_pid"
ends "a trial"
mkdir snap
cp -a state backup db* snap/
again() {
	rm -rf state backup db db-*
	cp -a snap/. .
}
tried=$(ls state/*/metered-new 2>/dev/null || echo state/*/output)

# ---- processes of versions of this worker may go on to count, without anybody who watches their time
for counts in state/*/metered-*.counts; do
	[ ! -d "$counts" ] || touch "$counts/earlier"
done
begin_work
awaits '! ls state/*/metered-*.counts/earlier >/dev/null 2>&1' || fail "earlier counts: they are read"
state_is trying "earlier counts"

# ---- the policy changes: the worker ends, and the next one goes on
awaits '! cmp -s prog original' || fail "the policy changes: no version comes into place"
echo '# changed' >>etc/morph.conf
ends "the policy changes"
says err.txt 'the policy was changed' "the policy changes"
state_is trying "the policy changes"
begin_work
awaits '! cmp -s prog original' || fail "the policy changed: no version comes into place"

# ---- processes of the new version crash, and none of the original's did: one that always runs has no pairs to compare
# Three crashes end it. The worker may miss the first ones: on a busy machine, it begins to watch a version's processes
# later than they start.
for ((tries = 0, crashed = 0; tries < 1000 && crashed < 30; tries++)); do
	[ $crashed -lt 3 ] || [ "$(db "SELECT state FROM job LIMIT 1")" = trying ] || break
	./prog 2000000000 >/dev/null &
	runs=$!
	until [ "$(cat /proc/$runs/comm)" = prog ]; do sleep 0.01; done
	signal=TERM
	cmp -s /proc/$runs/exe "$tried" && signal=SEGV crashed=$((crashed + 1))
	kill -$signal $runs
	wait $runs 2>/dev/null
done
wait_for not-faster "a crash"
ends "a crash"
[ "$(db "SELECT verdict FROM history WHERE step = 'tried'")" = crashes ] || fail "a crash: $(db "SELECT step, verdict FROM history")"

# ---- a version of the trial is put in place, and the call fails
again
touch fails
begin_work
wait_for failed "a version of the trial"
ends "a version of the trial"
says err.txt 'could not be put in place: the directory cannot be flushed' "a version of the trial"
rm fails

# ---- undone by its user while the worker is busy with another job: it comes to the old list's next job, and leaves it alone
again
cp newer second
profile second 12000
"$BUILD/morph-optimize" --db=db --backup-dir=backup --report=none --in-place second || fail "--in-place"
db "INSERT INTO job SELECT NULL, path, build_id, text_hash, 'another', 'undoing', unixepoch(), 'timer', 0, 1, 0,
	'it was asked for', '', '', 0, 0, 0, 0, 0, 0, 0, 0 FROM module WHERE path = '$dir/second'"
begin_work
awaits '[ -e waits ]' || fail "undone meanwhile: the other job does not begin"
command_ends 0 "undone meanwhile" "$BUILD/morph" --db=db --backup-dir=backup undo "$dir/prog"
touch go
ends "undone meanwhile"
state_is undone "undone meanwhile"
cmp -s second newer || fail "undone meanwhile: the other job was not"
[ ! -e wrong ] || fail "everyday use: a process failed"
finish
