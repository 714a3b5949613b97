#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The start code of instrumented files, linked by hand into programs and libraries, as the entry in
# place of _start and of _init. The counts must be in the file however the program ends, and the
# program must not notice.
. "$(dirname "$0")/../lib.sh"
scratch runtime
cc=${CC:-gcc}
need "${cc%% *}" od
blob=$BUILD/runtime/at-0x10000.bin
[ -s "$blob" ] || { echo "FAIL: $blob: not built"; exit 1; }

# skip_part WHAT: note a part that was left out
skip_part() {
	left_out="$left_out $1;"
}

# glue NAME NEXT COUNTS: write NAME.s with the start code, which continues at NEXT
glue() {
	cat >"$1.s" <<S
	.section .text.morph, "ax", @progbits
	.balign	16
	.globl	morph_start_$1, morph_init_$1
	.hidden	counters_$1, $2
morph_start_$1:
	.incbin	"$blob"
	.set	morph_init_$1, morph_start_$1 + 16
params:	.ascii	"MORPHRT6"
	.quad	counters_$1 - params
	.quad	8192
	.quad	$2 - params
	.quad	0, 0
	.quad	0x1122334455667788
	.quad	0, 0
path:	.asciz	"$3"
	.zero	1024 - (. - path)
	.bss
	.balign	4096
	.globl	counters_$1
counters_$1:
	.zero	8192
	.section .note.GNU-stack, "", @progbits
S
}

# counter FILE NUMBER: print a counter
counter() {
	od -An -td8 -j $((4096 + 8 * $2)) -N 8 "$1" | tr -d ' '
}

# counts FILE NUMBER WANT WHAT: the counter has the value WANT
counts() {
	local have
	have=$(counter "$1" "$2")
	[ "$have" = "$3" ] || fail "$4: counter $2 is $have, not $3"
}

# header FILE WHAT: the file of counts has its size, magic and hash
header() {
	[ "$(stat -c %s "$1" 2>/dev/null)" = $((4096 + 8192)) ] || fail "$2: no file of counts"
	[ "$(head -c 8 "$1")" = MORPHCNT ] || fail "$2: no header"
	[ "$(od -An -tx8 -j 24 -N 8 "$1" | tr -d ' ')" = 1122334455667788 ] || fail "$2: no hash"
}

cat >main.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

extern volatile unsigned long counters_prog[1024] __attribute__((visibility("hidden")));

extern void _start(void);

static void add(int i)
{
	__atomic_fetch_add(&counters_prog[i], 1, __ATOMIC_RELAXED);
}

#ifdef EARLY
/* Run by ld.so: before the program's entry. */
static void early(void)
{
	add(0);
}
__attribute__((section(".preinit_array"), used)) static void (*const early_ptr)(void) = early;
#endif

__attribute__((constructor)) static void begin(void)
{
	add(1);
}

static void *work(void *arg)
{
	for (int i = 0; i < 10000; i++)
		add(2);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	/* The program's own entry, and not that of the start code. */
	printf("%d %s %s %lu\n", argc, argv[argc - 1], getenv("WORD"),
	       getauxval(AT_SECURE) + (getauxval(AT_ENTRY) != (unsigned long)_start));
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (!fork()) {
		add(3);
		_exit(0);
	}
	wait(NULL);
#ifdef LIBRARY
	{
		void *lib = dlopen(argv[argc - 1], RTLD_NOW);
		int (*twice)(int) = lib ? (int (*)(int))dlsym(lib, "twice") : NULL;

		if (!twice || twice(21) != 42)
			return 9;
	}
#endif
	if (argc > 2)
		kill(getpid(), SIGKILL);
	return 7;
}
C

n=0
for flags in "-pie -fPIE -DEARLY" "-no-pie -fno-pie -DEARLY" "-static -fno-pie -no-pie" "-static-pie -fPIE"; do
	n=$((n + 1))
	glue prog _start "$dir/counts.$n"
	# shellcheck disable=SC2086
	$cc -O1 $flags -Wl,-e,morph_start_prog -o "prog.$n" main.c prog.s -lpthread 2>err.txt || {
		case $flags in
		*static*) skip_part "$flags: cannot be linked here"; continue ;;
		esac
		fail "$flags: $(cat err.txt)"
		continue
	}
	for run in 1 2; do
		got=0
		WORD=word "./prog.$n" last >out.txt 2>err.txt || got=$?
		[ $got = 7 ] || fail "$flags: status $got: $(cat err.txt)"
		[ "$(cat out.txt)" = "2 last word 0" ] || fail "$flags: $(cat out.txt)"
		header "counts.$n" "$flags"
		case $flags in *EARLY*) counts "counts.$n" 0 $run "$flags" ;; esac
		counts "counts.$n" 1 $run "$flags"
		counts "counts.$n" 2 $((run * 40000)) "$flags"
		counts "counts.$n" 3 $run "$flags"
	done
	# With all standard descriptors closed, ended by a signal; then without a file to write to.
	got=0
	{ WORD=word "./prog.$n" more last <&- >&- 2>&- || got=$?; } 2>/dev/null
	[ $got = 137 ] || fail "$flags: killed, status $got"
	counts "counts.$n" 1 3 "$flags, killed"
	rm "counts.$n" && mkdir "counts.$n"
	got=0
	WORD=word "./prog.$n" last >out.txt || got=$?
	[ "$got $(cat out.txt)" = "7 2 last word 0" ] || fail "$flags, no file: $got $(cat out.txt)"
	rmdir "counts.$n"
	# Many at the same time.
	for _ in 1 2 3 4 5 6 7 8; do "./prog.$n" last >/dev/null & done
	wait
	header "counts.$n" "$flags, eight"
	counts "counts.$n" 1 8 "$flags, eight"
	counts "counts.$n" 2 320000 "$flags, eight"
done

# ---- libraries: entered by DT_INIT, with or without an _init behind
cat >lib.c <<'C'
extern volatile unsigned long counters_lib[1024] __attribute__((visibility("hidden")));
__attribute__((constructor)) static void begin(void)
{
	counters_lib[0]++;
}
int twice(int x)
{
	counters_lib[1]++;
	return 2 * x;
}
C
$cc -O1 -pie -fPIE -DLIBRARY -o user main.c -x assembler - -ldl -lpthread <<'S' || fail "user"
	.bss
	.globl	counters_prog
	.hidden	counters_prog
counters_prog: .zero 8192
	.section .note.GNU-stack, "", @progbits
S
glue lib _init "$dir/counts.lib"
$cc -O1 -shared -fPIC -Wl,-init,morph_init_lib -o lib.so lib.c lib.s || fail "lib.so"
sed 's/^\t\.quad\t_init - params/\t.quad\t0/; /\.hidden/s/, _init//; s/counts\.lib/counts.none/' lib.s >none.s
$cc -O1 -shared -fPIC -Wl,-init,morph_init_lib -o none.so lib.c none.s || fail "none.so"
for lib in lib none; do
	for run in 1 2; do
		got=0
		./user "$dir/$lib.so" >out.txt 2>err.txt || got=$?
		[ $got = 7 ] || fail "$lib.so: status $got: $(cat out.txt err.txt)"
		header "counts.$lib" "$lib.so"
		counts "counts.$lib" 0 $run "$lib.so"
		counts "counts.$lib" 1 $run "$lib.so"
	done
done

# ---- a program with more rights than its user writes no file
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ -x prog.1 ]; then
	chmod 755 . && rm -rf counts.1
	cp prog.1 suid && chmod 4755 suid
	# The directories above the scratch directory may not be accessible, so make another one.
	there=$(mktemp -d /tmp/morph-runtime.XXXXXX) && chmod 777 "$there" || exit 1
	at_exit 'rm -rf "$dir" "$there"'
	sed "s|$dir/counts.4|$there/counts|" prog.s >suid.s
	$cc -O1 -pie -fPIE -Wl,-e,morph_start_prog -o suid main.c suid.s -lpthread && chmod 4755 suid
	as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
	WORD=word $as_nobody ./suid last >out.txt 2>err.txt
	case $(cat out.txt) in
	*" 1") [ ! -e $there/counts ] || fail "set-user-id: wrote a file" ;;
	*) skip_part "set-user-id: $(cat out.txt err.txt)" ;;
	esac
	chmod 755 suid
	WORD=word $as_nobody ./suid last >out.txt 2>err.txt
	header $there/counts "not set-user-id any more"
	# A library cannot see the mode of the program's file, but it can see
	# the effects of the mode.
	sed "s|$dir/counts.lib|$there/more|" lib.s >caps.s
	$cc -O1 -shared -fPIC -Wl,-init,morph_init_lib -o $there/caps.so lib.c caps.s
	for rights in cap_net_raw+ep u+s; do
		cp user $there/user
		case $rights in
		u+s) chmod 4755 $there/user ;;
		*) setcap $rights $there/user 2>err.txt || { skip_part "setcap"; continue; } ;;
		esac
		got=0
		WORD=word $as_nobody $there/user "$there/caps.so" >out.txt 2>err.txt || got=$?
		[ $got = 7 ] || fail "$rights: status $got: $(cat err.txt)"
		case $(cat out.txt) in
		*" 1") [ ! -e $there/more ] || fail "$rights: the library wrote a file" ;;
		*) skip_part "$rights: $(cat out.txt)" ;;
		esac
		rm -f $there/user $there/more
	done
	cp user $there/user
	WORD=word $as_nobody $there/user "$there/caps.so" >out.txt 2>err.txt
	header $there/more "a library in a program without such rights"
else
	skip_part "set-user-id: not root"
fi
echo "$n kinds of programs, 2 of libraries"
finish
