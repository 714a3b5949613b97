#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph live with the path of a library: all processes that have loaded it, whatever program they run, also after another file
# got the name; a library that a process unloads, and loads again, while a version of it is in use; --program, with a process
# of another program that cannot be asked.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-live.sh"
live_scratch libraries
pids=()
at_exit 'kill -9 "${pids[@]}" 2>/dev/null; rm -rf "$dir"'
cat >lib.c <<'C'
int summed(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 7 ? i : x; return s; }
int added(int x) { return x > 3 ? summed(x) + summed(x - 1) : x; }
C
cat >user.c <<'C'
#include <stdio.h>
#include <unistd.h>
int added(int x);
int main(void) { printf("ready %d\n", added(9)); fflush(stdout); for (;;) pause(); }
C
# Its first thread ends, so nothing can be asked or taken back.
cat >alone.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int added(int x);
static void *stay(void *arg) { printf("ready %d\n", added(9)); fflush(stdout); for (;;) pause(); return arg; }
int main(void) { pthread_t t; pthread_create(&t, NULL, stay, NULL); pthread_exit(NULL); }
C
# For each line: "load", "unload", "block" and "free" for the memory where it was, or a number, for which it prints what
# the library makes of it.
cat >loads.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define PAGE 4096
int main(int argc, char **argv)
{
	void *lib = NULL, *code = NULL, *block = NULL;
	char line[80];
	puts("ready");
	fflush(stdout);
	while (argc > 1 && fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "load\n"))
			printf("load %d\n", !!(lib = dlopen(argv[1], RTLD_NOW)));
		else if (!strcmp(line, "unload\n"))
			printf("unload %d\n", dlclose(lib));
		else if (!strcmp(line, "block\n"))
			printf("block %d\n", !!(block = mmap((void *)((unsigned long)code & -PAGE), PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
		else if (!strcmp(line, "free\n"))
			printf("free %d\n", munmap(block, PAGE));
		else
			printf("is %d\n", ((int (*)(int))(code = dlsym(lib, "added")))(atoi(line)));
		fflush(stdout);
	}
}
C
gcc -O2 -shared -fPIC -o liblib.so lib.c && gcc -O1 -shared -fPIC -o newer.so lib.c && gcc -O2 -o user user.c -L. -llib -Wl,-rpath,"$PWD" &&
	cp user another && gcc -O1 -pthread -o alone alone.c -L. -llib -Wl,-rpath,"$PWD" && gcc -O2 -o loads loads.c || exit 1
cp liblib.so original.so
lib=$dir/liblib.so
more() { # PROGRAM
	: >run.txt
	"$1" >run.txt &
	pids+=($!)
	pid=$!
	awaits 'grep -qs ready run.txt' || fail "no process"
}
# rows FILTER: of the last answer
rows() {
	jq -r "[.processes[] | $1] | length" out.txt
}

# ---- nobody has loaded it
command_ends 1 "place where nobody has it" "$BUILD/morph" live place "$lib"
says err.txt "no process has loaded it" "nobody"
live undo "$lib" || fail "undo where nobody has it: $(cat err.txt)"

# ---- two processes of one program; the program's own code is another file
more ./user
one=$pid
more ./user
two=$pid
command_ends 0 "place" "$BUILD/morph" live --json place --nr=2 "$lib"
[ "$(jq -c .programs out.txt)" = "[\"$dir/user\"]" ] || fail "programs: $(cat out.txt)"
mapfile -t at < <(jq -r '.places[]' out.txt)
version lib.live liblib.so "${at[0]}"
counting lib.count edges "${at[1]}" liblib.so
counts_dir counts
live adopt --counts=counts "$lib" lib.count || fail "adopt one that counts: $(cat err.txt)"
[ "$(rows 'select(.state == "in use" and .changed)')" = 2 ] || fail "adopt one that counts: $(cat out.txt)"
live adopt "$lib" lib.live || fail "adopt: $(cat err.txt)"
[ "$(rows 'select(.state == "in use" and .changed and .kind == "live")')" = 2 ] || fail "adopt: $(cat out.txt)"
live status "$lib" || fail "status: $(cat err.txt)"
[ "$(rows 'select(.state == "in use")')" = 2 ] || fail "status: $(cat out.txt)"
live undo "$dir/user" || fail "undo of the program: $(cat err.txt)"
[ "$(rows '.')" = 0 ] || fail "undo of the program takes the library's versions: $(cat out.txt)"

# ---- another program has it, too
more ./another
three=$pid
command_ends 0 "place for two programs" "$BUILD/morph" live --json place --nr=2 "$lib"
[ "$(jq -c '.programs | sort' out.txt)" = "[\"$dir/another\",\"$dir/user\"]" ] || fail "two programs: $(cat out.txt)"
live adopt "$lib" lib.live || fail "adopt in two programs: $(cat err.txt)"
[ "$(rows 'select(.state == "in use")')" = 3 ] && [ "$(rows "select(.pid == $three and .changed)")" = 1 ] || fail "adopt in two programs: $(cat out.txt)"
command_ends 0 "place for one of two" "$BUILD/morph" live --json place --program="$dir/user" "$lib"
[ "$(jq -c .programs out.txt)" = "[\"$dir/user\"]" ] || fail "one of two: $(cat out.txt)"
live undo --program="$dir/another" "$lib" || fail "undo in one program: $(cat err.txt)"
[ "$(rows 'select(.changed)')" = 1 ] && [ "$(rows "select(.pid == $three)")" = 1 ] || fail "undo in one program: $(cat out.txt)"
live adopt --program="$dir/user" "$lib" lib.live || fail "adopt in one program: $(cat err.txt)"
[ "$(rows 'select(.changed == false)')" = 2 ] && [ "$(rows .)" = 2 ] || fail "adopt in one program: $(cat out.txt)"
live adopt "$lib" lib.live || fail "adopt in both again: $(cat err.txt)"
more ./alone
live undo --program="$dir/user" "$lib" || fail "undo beside a process that cannot be asked: $(cat err.txt)"
[ "$(rows 'select(.changed)')" = 2 ] && [ "$(rows "select(.pid == $three)")" = 0 ] || fail "undo beside a process that cannot be asked: $(cat out.txt)"
live adopt --program="$dir/user" "$lib" lib.live || fail "adopt beside a process that cannot be asked: $(cat err.txt)"
live undo "$lib"
[ $? = 4 ] && grep -q "its first thread has ended" err.txt || fail "undo in a process that cannot be asked: $(cat err.txt)"
kill -9 "$pid"
wait "$pid" 2>/dev/null
live adopt "$lib" lib.live || fail "adopt in both once more: $(cat err.txt)"
command_ends 1 "a program that nobody runs" "$BUILD/morph" live adopt --program="$dir/loads" "$lib" lib.live

# ---- an output gets the name, then another build: those with the file of before are meant
"$BUILD/morph-optimize" --all --report=none -o plain.so liblib.so && mv plain.so liblib.so || fail "no output"
more ./user
four=$pid
live adopt "$lib" lib.live || fail "adopt with an output at the path: $(cat err.txt)"
[ "$(rows 'select(.state == "in use" and .changed == false)')" = 3 ] || fail "an output at the path: $(cat out.txt)"
[ "$(rows "select(.pid == $four)")" = 0 ] || fail "the output's process is changed: $(cat out.txt)"
mv newer.so liblib.so
more ./user
five=$pid
live adopt "$lib" lib.live
[ $? = 4 ] && [ "$(rows "select(.pid == $five and (.error | contains(\"does not run the original\")))")" = 1 ] || fail "another build: $(cat out.txt)"
rm liblib.so
live undo "$lib" || fail "undo without a file at the path: $(cat err.txt)"
[ "$(rows 'select(.changed and .state == "not in use")')" = 3 ] || fail "undo without a file: $(cat out.txt)"
{
	kill -9 "$one" "$two" "$three" "$four" "$five"
	wait "$one" "$two" "$three" "$four" "$five"
} 2>/dev/null

# ---- unloaded and loaded again, with a version in use
cp original.so liblib.so
mkfifo in
./loads "$lib" <in >run.txt &
pid=$!
pids+=("$pid")
exec 7>in
tells() { # LINE ANSWER
	echo "$1" >&7
	awaits "[ \"\$(tail -n 1 run.txt)\" = '$2' ]" || fail "$1: $(tail -n 1 run.txt), not $2"
}
tells load "load 1"
tells 9 "is 84"
rm lib.live
version lib.live liblib.so "$("$BUILD/morph" live place "$lib")"
live adopt "$lib" lib.live || fail "adopt in one that loads it: $(cat err.txt)"
tells 8 "is 65"
tells unload "unload 0"
live undo "$lib" || fail "undo of one that is not loaded: $(cat err.txt)"
[ "$(rows .)" = 0 ] || fail "undo of one that is not loaded: $(cat out.txt)"
command_ends 1 "adopt of one that is not loaded" "$BUILD/morph" live adopt "$lib" lib.live
tells load "load 1"
tells 9 "is 84"
live adopt "$lib" lib.live || fail "adopt of one that is loaded again: $(cat err.txt)"
[ "$(rows 'select(.state == "in use" and .changed)')" = 1 ] || fail "loaded again: $(cat out.txt)"
tells 8 "is 65"
live undo "$lib" || fail "undo of one that is loaded again: $(cat err.txt)"
text_is liblib.so || fail "undo of one that is loaded again: other code"
tells 9 "is 84"

# ---- the same, and it is loaded at a higher address: the copies of before come first in its mappings
at() {
	awk '$2 ~ /x/ && $6 ~ /\/liblib.so$/ { print $1; exit }' "/proc/$pid/maps"
}
tells unload "unload 0"
tells block "block 1"
tells load "load 1"
low=$(at)
live adopt "$lib" lib.live || fail "adopt of one at a low address: $(cat err.txt)"
tells 8 "is 65"
tells unload "unload 0"
tells free "free 0"
tells load "load 1"
[[ "$(at)" > "$low" ]] || fail "it was loaded at $(at), not above $low"
live adopt "$lib" lib.live || fail "adopt of one at a higher address: $(cat err.txt)"
live status "$lib" || fail "status of one at a higher address: $(cat err.txt)"
[ "$(rows 'select(.state == "in use")')" = 1 ] || fail "status of one at a higher address: $(cat out.txt)"
tells 8 "is 65"
live undo "$lib" || fail "undo of one at a higher address: $(cat err.txt)"
[ "$(rows 'select(.changed)')" = 1 ] || fail "undo of one at a higher address: $(cat out.txt)"
text_is liblib.so || fail "undo of one at a higher address: other code"
tells 9 "is 84"
exec 7>&-
wait "$pid" || fail "the process that loads it ended with $?"
finish
