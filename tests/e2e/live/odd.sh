#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live in processes that are odd, or want to do harm: a thread in a restartable sequence makes no injected calls, nor does one
# whose system calls become signals; below a handler's stack, nothing changes; no lease on a mapped file, and no memory that holds its
# readers, lets the command wait for good.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch odd
gcc -D_GNU_SOURCE -O1 -pthread -no-pie -o odd "$root/tests/e2e/live/odd.c" || exit 1
start ./odd
version odd.live odd
ends() {
	kill -TERM "$pid"
	wait "$pid"
	says run.txt right "$1"
}
ends "the program by itself"

# odd HOW: start ./odd in this way; false: it cannot be tried here
odd() {
	: >run.txt # the last one's is not read
	./odd "$@" </dev/null >run.txt 2>run.err &
	pid=$!
	at_exit "kill -9 $pid 2>/dev/null; rm -rf '$dir'"
	awaits "grep -qs ready run.txt || ! kill -0 $pid 2>/dev/null"
	grep -q ready run.txt && return
	wait "$pid"
	[ $? = 77 ] || fail "$1: it does not begin: $(cat run.err)"
	left_out="$left_out $1;"
	return 1
}
# changes WHAT: the version gets in, and out again
changes() {
	live adopt "$pid" odd.live || fail "$1: $(cat err.txt)"
	[ "$(state)" = "in use" ] || fail "$1: $(cat out.txt)"
	live undo "$pid" || fail "$1, undo: $(cat err.txt)"
}

if odd nested; then
	changes "a handler on a part of the main stack"
	ends "memory below a handler's stack"
fi
if odd restarts; then
	for i in 1 2 3 4 5; do
		changes "threads in restartable sequences, change $i"
	done
	ends "restartable sequences"
fi
# Before 6.4 the kernel does not tell.
if [ "$(printf '%s\n' 6.4 "$(uname -r)" | sort -V | head -n 1)" = 6.4 ] && odd dispatch; then
	live adopt "$pid" odd.live && fail "the only thread's system calls become signals, and it made one"
	says err.txt "into signals"
	ends "system calls that become signals"
fi
# Each of them would take 45 seconds.
if odd leases 20; then
	timeout 400 "$BUILD/morph" live status "$pid" >out.txt 2>&1 || fail "leases: status $?, $(cat out.txt)"
	ends leases
fi
# The limit is half an hour; here, that is ten seconds.
cat >soon.c <<'C'
#include <sys/time.h>
#include <unistd.h>
unsigned int alarm(unsigned int seconds)
{
	struct itimerval t = {.it_value = {.tv_sec = seconds / 180}};
	return setitimer(ITIMER_REAL, &t, NULL);
}
C
gcc -shared -fPIC -o soon.so soon.c || exit 1
if odd readers; then
	LD_PRELOAD=$PWD/soon.so timeout -s KILL 600 "$BUILD/morph" live adopt "$pid" odd.live >out.txt 2>&1
	got=$?
	[ $got = 142 ] || fail "memory that holds its readers: status $got, not SIGALRM's: $(cat out.txt)"
	ends "memory that holds its readers"
fi
finish
