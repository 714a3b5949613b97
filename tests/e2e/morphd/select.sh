#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: each source samples one selection of processes after the other
# morphd run --pid, --unit, --user: with each source, only the named processes are sampled. Also the
# process, unit and user of each sample.
. "$(dirname "$0")/../lib.sh"
TMPDIR=/tmp # another user must be able to look into it
scratch select
cc=${CC:-gcc}
need "${cc%% *}" jq

cat >spin.c <<'C'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
/* spin SECONDS [CHILD]: with a second argument another program does it, after a while */
int main(int argc, char **argv)
{
	volatile unsigned long n = 0;

	signal(SIGALRM, _exit);
	alarm((unsigned int)atoi(argv[1]));
	if (argc > 2) {
		sleep(1);
		if (!fork())
			execl(argv[2], argv[2], argv[1], (char *)0);
	}
	for (;;)
		n++;
}
C
# shellcheck disable=SC2086
$cc -O1 -Wl,--build-id spin.c -o wanted && $cc -O2 -Wl,--build-id spin.c -o other || exit 1
cp wanted started
printf '\0' >>started

# The test needs samples of the whole machine.
if ! "$BUILD/morphd" run --db probe.db --user=0 -- true 2>err.txt; then
	echo "skip: $(head -1 err.txt)"
	exit 77
fi

pids=
start() {
	"$@" &
	last=$!
	pids="$pids $last"
}
end_all() {
	# shellcheck disable=SC2086
	kill $pids 2>/dev/null
	wait 2>/dev/null
	pids=
}
at_exit 'end_all; rm -rf "$dir"'

# only NAME DB: all samples are of processes of that name
only() {
	ends 0 "activity of $2" --db "$2" --json activity --by=process
	json "$2: only $1" ".total_samples > 0 and ([.rows[].process] - [\"$1\"] == [])"
	ends 0 "query of $2" --db "$2" --json query
	json "$2: another program" "[.rows[].module | select(endswith(\"/other\"))] == []"
}

sampling
for source in $sources; do
	rm -f ./*.db*
	start ./wanted 30
	wanted=$last
	start ./other 30
	other=$last
	command_ends 0 "$source: --pid" "$BUILD/morphd" run --source=$source --db pid.db --pid=$wanted -- sleep 1
	only wanted pid.db
	command_ends 0 "$source: two" "$BUILD/morphd" run --source=$source --db two.db --pid=$wanted \
		--pid=$other -- sleep 1
	ends 0 "$source: two" --db two.db --json activity --by=process
	json "$source: both" '[.rows[].process] | sort == ["other", "wanted"]'
	# morphd's exit status is the command's.
	command_ends 7 "$source: status" "$BUILD/morphd" run --source=$source --db pid.db --pid=$wanted -- \
		sh -c 'exit 7'
	end_all

	# Children are sampled too, also later ones. morphd ends when all of them have ended.
	start ./wanted 4 "$PWD/other"
	command_ends 0 "$source: children" timeout 600 "$BUILD/morphd" run --source=$source --db child.db \
		--pid=$last
	ends 0 "$source: children" --db child.db --json activity --by=process
	json "$source: child" '[.rows[].process] | sort == ["other", "wanted"]'
	end_all

	# By user: only root can run two users' processes.
	if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
		chmod 755 "$dir"
		start setpriv --reuid=54321 --regid=54321 --clear-groups ./wanted 30
		start ./other 30
		command_ends 0 "$source: --user" "$BUILD/morphd" run --source=$source --db user.db \
			--user=54321 -- sleep 1
		only wanted user.db
		ends 0 "$source: users" --db user.db --json activity --by=user
		json "$source: the user" '[.rows[].user] == ["54321"]'
		end_all
	else
		left_out="--user needs root and setpriv"
	fi

	# By unit: a cgroup of the test, in the unified hierarchy or in systemd's.
	group=
	for tree in $(awk '$3 == "cgroup2" || /name=systemd/ { print $2 }' /proc/mounts); do
		mkdir "$tree/morphtest-$$.service" 2>/dev/null || continue
		group=$tree/morphtest-$$.service
		mkdir "$group/inner" 2>/dev/null
		break
	done
	start ./wanted 30
	wanted=$last
	start ./other 30
	if [ -n "$group" ] && echo $wanted 2>/dev/null >"$group/inner/cgroup.procs"; then
		for name in "morphtest-$$" "morphtest-$$.service"; do
			rm -f unit.db*
			command_ends 0 "$source: --unit=$name" "$BUILD/morphd" run --source=$source \
				--db unit.db --unit="$name" -- sleep 1
			only wanted unit.db
		done
		ends 0 "$source: units" --db unit.db --json activity --by=unit
		json "$source: the unit" "[.rows[].unit] == [\"morphtest-$$.service\"]"
		command_ends 0 "$source: all" "$BUILD/morphd" run --source=$source --db all.db \
			--unit="morphtest-$$" --pid=$last -- sleep 1
		ends 0 "$source: all" --db all.db --json activity --by=process
		json "$source: either" '[.rows[].process] | sort == ["other", "wanted"]'
	else
		left_out="${left_out:+$left_out; }no cgroup can be made here"
	fi
	end_all
	if [ -n "$group" ]; then
		sleep 0.2
		rmdir "$group/inner" "$group" 2>/dev/null
	fi
done

# Impossible selections.
command_ends 1 "no such process" "$BUILD/morphd" run --db no.db --pid=4194303 -- true
says err.txt 'no such process'
command_ends 2 "no such user" "$BUILD/morphd" run --db no.db --user=nosuchuser -- true
says err.txt 'no such user'
command_ends 2 "no number" "$BUILD/morphd" run --db no.db --pid=x -- true
command_ends 2 "nothing" "$BUILD/morphd" run --db no.db
[ "$(id -u)" != 0 ] || [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -lt 1 ] ||
	! command -v setpriv >/dev/null || {
	mkdir -m 777 open
	command_ends 1 "not allowed" setpriv --reuid=54321 --regid=54321 --clear-groups \
		"$BUILD/morphd" run --source=perf --db open/no.db --user=54321 -- true
	says err.txt 'sample the whole machine: .*not allowed'
}

[ $nr_failed = 0 ] || {
	echo "$nr_failed failed"
	exit 1
}
[ -z "$left_out" ] || {
	echo "skip: $left_out; the rest passed"
	exit 77
}
