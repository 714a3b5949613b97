#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A server that answers otherwise than it should, without an end, or not at all. A build whose lease is over is undone all
# the same, and one whose lease is not over stays: a host's `renew' ends, in bounded time and memory, and prints nothing
# that a terminal would obey.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc jq python3
scratch silence
[ -x "$BUILD/morph-fleet" ] || { echo "skip: morph-fleet was not built"; exit 77; }
server=$root/tests/e2e/fleet/hostile_server.py

# For the command, hours pass quickly: it waits 1,000 times as long as it seems.
cat >clock.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	int r;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	r = real(clock, now);
	if (clock == CLOCK_MONOTONIC)
		now->tv_sec = now->tv_sec * 1000 + now->tv_nsec / 1000000;
	return r;
}
C
gcc -O2 -shared -fPIC clock.c -o clock.so -ldl || exit 1
mkdir sockets state
chmod 755 state
python3 "$server" sockets &
pid=$!
at_exit 'kill $pid 2>/dev/null; rm -rf "$dir"'
for ((i = 0; i < 100; i++)); do [ -S sockets/.s.PGSQL.5432 ] || sleep 0.1; done
printf 'exec true\n' >prog
now=$(date +%s)

# leases EXPIRES: the file with one lease
leases() {
	jq -n --arg path "$dir/prog" --argjson expires "$1" --argjson now "$now" '{leases: [{path: $path,
		module: "aa00000000000000bbbb", options: "", version: "v", release: 1, layout: "",
		granted_s: ($now - 7200), expires_s: $expires}]}' >state/fleet-leases.json
}
# renew NAME: with that kind of server
renew() {
	(ulimit -v 4000000
	LD_PRELOAD=$dir/clock.so timeout 60 "$BUILD/morph-fleet" renew -d "host=$dir/sockets dbname=$1" --db=store.db \
		--state-dir=state --config=/dev/null) >out.txt 2>err.txt
}

nr=0
for name in $(python3 "$server" --names); do
	nr=$((nr + 1))
	for left in -3600 3600; do
		leases $((now + left))
		status=0
		renew "$name" || status=$?
		[ $status = 0 ] || [ $status = 75 ] || fail "$name, $left s left: status $status: $(cat -v err.txt)"
		! grep -q $'\x1b' out.txt err.txt || fail "$name: something for terminals: $(cat -v out.txt err.txt)"
		kept=$(jq '.leases | length' state/fleet-leases.json)
		if [ $left -lt 0 ]; then
			[ "$kept" = 0 ] || fail "$name: its lease is over, and not undone: $(cat -v out.txt)"
		else
			[ "$kept" = 1 ] || fail "$name: its lease is not over: $(cat -v out.txt)"
		fi
	done
done
echo "$nr kinds of answers"
finish
