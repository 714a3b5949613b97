#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live refuses what it cannot do for certain, with the reason and status 4, and changes nothing: other tracers,
# seccomp filters, containers, a shared memory between vfork and exec, stopped processes, code that others changed, files that are not
# what runs or that others may write, versions of other kinds, too much memory, a place that is taken.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch refusals
need python3
cat >odd.c <<'C'
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));
static int owner;

static void *wait_always(void *arg) { for (;;) pause(); return arg; }

static void *waits_for_child(void *arg)
{
	if (!vfork()) {
		sleep(1000);
		_exit(0);
	}
	return arg;
}

static int share(void *arg) { (void)arg; while (!kill(owner, 0)) usleep(50000); return 0; }

__attribute__((noinline)) int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
__attribute__((noinline)) int g(int x) { return x > 3 ? f(x) + f(x - 1) : x; }

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	/* All system calls, or all but one. */
	struct sock_filter all[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
				    {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, argc > 2 ? (unsigned)atoi(argv[2]) : 9999},
				    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
				    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS}};
	struct sock_fprog filter = {4, all};

	owner = getpid();
	if (!strcmp(how, "seccomp") && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter)))
		return 77;
	if ((!strcmp(how, "mount") || !strcmp(how, "hidden")) &&
	    (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)))
		return 77;
	if (!strcmp(how, "hidden") && mount("none", argv[2], "tmpfs", 0, NULL))
		return 77;
	if (!strcmp(how, "user") && unshare(CLONE_NEWUSER))
		return 77;
	if (!strcmp(how, "pid")) {
		if (unshare(CLONE_NEWPID))
			return 77;
		if (fork() > 0) { wait(NULL); return 0; }
	}
	if (!strcmp(how, "chroot") && (chdir("/proc") || chroot("/proc")))
		return 77;
	if (!strcmp(how, "changed")) {
		char *page = (char *)((unsigned long)f & -4096ul);
		if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC)) return 77;
		((char *)main)[0] = 0x90;
	}
	if (!strcmp(how, "taken") && mmap((char *)strtoul(argv[2], NULL, 0), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 77;
	/* No place below the libraries, as in a process of Erlang */
	if (!strcmp(how, "reserved") &&
	    mmap(NULL, (3ul << 29) + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return 77;
	printf("ready %d\n", g(50));
	fflush(stdout);
	if (!strcmp(how, "sibling") && clone(share, stack + sizeof(stack), CLONE_VM | CLONE_PARENT | SIGCHLD, NULL) < 0)
		return 77;
	pthread_t thread;
	if (!strcmp(how, "vfork2") && pthread_create(&thread, NULL, waits_for_child, NULL))
		return 77;
	/* Only read, write, exit and sigreturn */
	if (!strcmp(how, "strict") && !prctl(PR_SET_SECCOMP, 1))
		for (char c;;)
			while (read(0, &c, 1) == 1)
				;
	if (!strcmp(how, "alone") && !pthread_create(&thread, NULL, wait_always, NULL))
		pthread_exit(NULL);
	if (!strcmp(how, "vfork") && !vfork()) {
		sleep(1000);
		_exit(0);
	}
	for (;;)
		pause();
}
C
gcc -O1 -pthread -o odd odd.c || exit 1
# A program whose load address is always the same, so that one version serves for all.
gcc -O1 -pthread -no-pie -o fixed odd.c || exit 1
input=/dev/null
start ./fixed
version fixed.live fixed
good=$pid
nr=0

# refused WHAT REASON: process $pid is not changed, for this REASON
refused() {
	local what=$1 reason=$2 before after got=0
	nr=$((nr + 1))
	before=$(cut -d' ' -f1,2,6 "/proc/$pid/maps")
	"$BUILD/morph" live adopt "$pid" "${3:-fixed.live}" >out.txt 2>err.txt || got=$?
	[ $got = 4 ] || fail "$what: status $got, not 4: $(cat out.txt err.txt)"
	says err.txt "$reason" "$what"
	after=$(cut -d' ' -f1,2,6 "/proc/$pid/maps")
	[ "$before" = "$after" ] || fail "$what: the mappings changed"
}
# odd HOW: start ./fixed in this way
odd() {
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	start ./fixed "$@"
}

# sees WHAT REASON COMMAND: refused() where COMMAND has changed what /proc and /sys say; stands in for what this machine cannot do
sees() {
	local what=$1 reason=$2 real=$BUILD
	mkdir -p seen
	printf '#!/bin/bash\nexec unshare -m sh -e -c %q sh "$@"\n' "$3; exec '$real/morph' \"\$@\"" >seen/morph
	chmod +x seen/morph
	BUILD=$PWD/seen
	refused "$what" "$reason"
	BUILD=$real
}

# ---- what the process is
odd seccomp
if [ "$(id -u)" = 0 ] && [ "$(awk '/^Seccomp:/ { print $2 }' /proc/self/status)" = 0 ]; then
	live adopt "$pid" fixed.live || fail "a seccomp filter that allows all: $(cat err.txt)"
	[ "$(state)" = "in use" ] || fail "seccomp: $(cat out.txt)"
	live undo "$pid" || fail "undo behind a seccomp filter: $(cat err.txt)"
	# getpid, rt_sigreturn, openat, close
	for call in 39 15 257 3; do
		odd seccomp $call; refused "a seccomp filter without call $call" "does not allow system call $call,"
	done
	# What undo may not unmap stays mapped.
	odd seccomp 11
	live adopt "$pid" fixed.live || fail "a seccomp filter without munmap: $(cat err.txt)"
	live undo "$pid" || fail "undo without munmap: $(cat err.txt)"
	[ "$(jq -r '.processes[0] | .state + ": " + .why_mapped' out.txt | grep -c "copies mapped: .*system call 11")" = 1 ] ||
		fail "undo without munmap: $(cat out.txt)"
	kill -0 "$pid" || fail "the filter ended the process"
else
	refused seccomp "seccomp filter that cannot be read"
fi
if [ "$(id -u)" = 0 ]; then
	odd hidden "$PWD"; refused "a file that it does not see" "sees another file"
	odd mount
	live adopt "$pid" fixed.live || fail "a mount namespace where the file is: $(cat err.txt)"
	live undo "$pid" || fail "a mount namespace, undo: $(cat err.txt)"
	odd user; refused "user namespace" "another user namespace"
	odd chroot; refused chroot "sees another file"
	odd pid
	outer=$pid pid=$(pgrep -P "$pid")
	refused "PID namespace" "another PID namespace"
	kill -9 "$pid"; pid=$outer
else
	echo "not root: namespaces are not tried"
fi
odd vfork
awaits "grep -q 'State:.D' /proc/$pid/status"
refused "vfork, and state D" "cannot be stopped (state D)"
pkill -9 -P "$pid"
odd vfork2
awaits "pgrep -P $pid >/dev/null"
refused "vfork by another thread" "another process shares its memory (between vfork and exec)"
pkill -9 -P "$pid"
mkfifo silent
exec 8<>silent
input=silent
odd strict
awaits "[ \"\$(awk '/^Seccomp:/ { print \$2 }' /proc/$pid/status)\" = 1 ]"
refused "strict seccomp" "seccomp permits it no system call"
input=/dev/null
odd
if [ "$(id -u)" = 0 ] && unshare -m true; then
	sees SELinux "SELinux is in force" 'mount -t tmpfs none /sys/fs; mkdir /sys/fs/selinux; echo 1 >/sys/fs/selinux/enforce'
	if [ -e "/proc/$pid/attr" ]; then
		sees AppArmor "AppArmor confines it" \
			"mount -t tmpfs none /proc/$pid/attr; mkdir /proc/$pid/attr/apparmor; echo 'mysqld (enforce)' >/proc/$pid/attr/apparmor/current"
	else
		echo "no /proc/PID/attr: AppArmor is not tried"
	fi
	sees "a shadow stack" "a shadow stack guards" \
		"{ echo 'x86_Thread_features: shstk'; cat /proc/$pid/status; } >seen/status; mount --bind seen/status /proc/$pid/status"
fi
odd sibling
sleep 0.2
refused "a process that is no child" "another process shares its memory"
odd alone
awaits "grep -q 'State:.Z' /proc/$pid/status"
nr=$((nr + 1))
for target in "$pid" "$PWD/fixed"; do
	for action in "adopt $target fixed.live" "undo $target"; do
		# shellcheck disable=SC2086
		command_ends 4 "without its first thread: $action" "$BUILD/morph" live $action
		says err.txt "process $pid: its first thread has ended" "$action"
	done
done
kill -0 "$pid" || fail "a process without its first thread was ended"
# It is in the way of no other one, and is mentioned only where it was asked for.
live status
! grep "process $pid:" err.txt || fail "status of all processes mentions one without its first thread"
command_ends 1 "place for one without its first thread" "$BUILD/morph" live place "$PWD/fixed"
says err.txt "no process runs it any more whose first thread goes on"
alone=$pid
start ./fixed
live place "$PWD/fixed" || fail "place beside a process without its first thread: $(cat err.txt)"
kill -9 "$alone"
odd
kill -STOP "$pid"
awaits "grep -q 'State:.T' /proc/$pid/status"
refused stopped "it is stopped"
kill -CONT "$pid"
# Where systemd mounts control groups
mount=$(awk '$3 == "cgroup2" && ($2 == "/sys/fs/cgroup" || $2 == "/sys/fs/cgroup/unified") { print $2; exit }' \
	/proc/self/mounts)
group=$mount/morph-refusals.$$
if [ -n "$mount" ] && mkdir "$group" 2>/dev/null && [ -e "$group/cgroup.freeze" ]; then
	at_exit "echo 0 >'$group/cgroup.freeze'; kill -9 $pid; sleep 0.2; rmdir '$group'; rm -rf '$dir'"
	echo "$pid" >"$group/cgroup.procs" && echo 1 >"$group/cgroup.freeze"
	awaits "grep -q 'frozen 1' '$group/cgroup.events'"
	refused frozen "its control group is frozen"
	echo 0 >"$group/cgroup.freeze"
	kill -9 "$pid"
	awaits "rmdir '$group' 2>/dev/null"
	odd
else
	[ -z "$mount" ] || rmdir "$group" 2>/dev/null
	echo "no control group: a frozen one is not tried"
fi
gdb -q -batch -p "$pid" -ex "shell touch traced; sleep 3" >/dev/null 2>&1 &
if command -v gdb >/dev/null && awaits '[ -e traced ]'; then
	refused "another tracer" "traces it already\|a debugger stopped it"
else
	echo "gdb is missing: another tracer is not tried"
fi
wait $! 2>/dev/null
odd reserved
live adopt "$pid" fixed.live || fail "no place below the libraries: $(cat err.txt)"
live undo "$pid" || fail "no place below the libraries, undo: $(cat err.txt)"
odd changed; refused "changed code" "somebody else has changed the code"
odd taken "0x$(readelf -lW fixed.live | awk '$1 == "LOAD" { a = $3 } END { print substr(a, 3) }')"
refused "a place that is taken" "is taken by"

# ---- which files
odd
cp fixed.live foreign.live
chmod 666 foreign.live
refused "a file that others may write" "other users may write it" foreign.live
cp fixed.live patched.live
printf '\x90' | dd of=patched.live bs=1 conv=notrunc \
	seek=$(($(readelf -SW fixed.live | awk '$2 == ".morph.text" || $3 == ".morph.text" { sub(/.*PROGBITS/, ""); print "0x" $2 }') + 3)) 2>/dev/null
refused "changed copies" "not written by\|was not proved" patched.live
"$BUILD/morph-optimize" --all -o plain.out fixed >/dev/null 2>&1
refused "a version for files" "no version for running processes" plain.out
cp "$(type -P ls)" other
refused "no version" "is no version that Morph wrote" other
gcc -O2 -pthread -no-pie -o other odd.c
"$BUILD/morph-optimize" --all --live-at=0x10000000 -o other.live other >/dev/null 2>&1
refused "a version of another file" "does not run the original" other.live
nr=$((nr + 1))
"$BUILD/morph" live adopt --limit=0 "$pid" fixed.live >/dev/null 2>err.txt
[ $? = 4 ] || fail "--limit=0"
says err.txt "would become its own memory"
# The file that runs counts, not the one at its path.
cp fixed moved && mv moved fixed
if [ "$(id -u)" = 0 ]; then
	live adopt "$pid" fixed.live || fail "a replaced file: $(cat err.txt)"
	live undo "$pid" || fail "a replaced file, undo: $(cat err.txt)"
else
	refused "a file that was replaced" "does not run the original"
fi

# ---- who asks
odd
command_ends 1 "no such process" "$BUILD/morph" live adopt 999999999 fixed.live
says err.txt "there is none"
command_ends 2 "no action" "$BUILD/morph" live frobnicate
command_ends 2 "no output" "$BUILD/morph" live adopt "$pid"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$dir"
	setpriv --reuid=65534 --clear-groups "$BUILD/morph" live undo "$pid" >out.txt 2>err.txt
	[ $? != 0 ] || [ ! -s out.txt ] || says out.txt "No version"
	setpriv --reuid=65534 --clear-groups "$BUILD/morph" live adopt "$pid" fixed.live >out.txt 2>err.txt &&
		fail "another user may adopt"
	[ "$(state)" = none ] || fail "another user changed it"
fi
kill -9 "$pid" "$good" 2>/dev/null
echo "$nr refusals"
[ $nr_failed = 0 ]
