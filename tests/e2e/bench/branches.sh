#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: only benchmarks use what it tests
# The plugin that counts branches: exact on programs with known counts, equal to single-stepping on
# a program of difficult cases, and it reports executions inside patches.
. "$(dirname "$0")/../lib.sh"
here=$root/tests/plugin/oracle
dir=$(mktemp -d "${TMPDIR:-/tmp}/branches.XXXXXX") || exit 1
at_exit 'rm -rf "$dir"'
export BUILD
cc=${CC:-gcc}
nr_failed=0

for tool in qemu-x86_64 python3 "${cc%% *}"; do
	if ! command -v "$tool" >/dev/null; then
		echo "skip: $tool is missing"
		exit 77
	fi
done
cd "$dir" || exit 1

# count JSON EXPRESSION: j is the whole, m the main program's counts
count() {
	python3 -c '
import json, sys
j = json.load(open(sys.argv[1]))
m = [f for f in j["files"] if f["main"]][0]
f = lambda name: [f for f in j["files"] if f["path"].endswith(name)][0]
print(eval(sys.argv[2]))' "$1" "$2"
}

# expect NAME JSON EXPRESSION VALUE
expect() {
	local got
	got=$(count "$2" "$3")
	[ "$got" = "$4" ] || fail "$1: $3 is $got, not $4"
}

branches() {
	"$root/scripts/bench/branches" "$@"
}

# ends STATUS WHAT ARGS: messages go to err.txt
ends() {
	local want=$1 what=$2 got=0
	shift 2
	branches "$@" >/dev/null 2>err.txt || got=$?
	[ "$got" = "$want" ] || fail "$what: status $got, not $want"
}

# ---- known by construction ----
cat >loop.S <<'EOF'
	.globl _start
	.text
_start:	mov	$1000, %ecx
1:	dec	%ecx
	jnz	1b
	jmp	moved
back:	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.section .morph.text, "ax", @progbits
	.balign 64
moved:	mov	$500, %ecx
2:	nop
	dec	%ecx
	jnz	2b
	jmp	back
	.section .note.GNU-stack, "", @progbits
EOF
$cc -nostdlib -static -o loop loop.S || exit 1
branches --json --edges loop.edges ./loop >loop.json || fail "loop: status $?"
expect loop loop.json 'm["all"]["instructions"]' $((1 + 2000 + 1 + 1 + 1500 + 1 + 3))
expect loop loop.json 'm["all"]["cond"]' 1500
expect loop loop.json 'm["all"]["cond_taken"]' $((999 + 499))
expect loop loop.json 'm["all"]["jumps"]' 2
expect loop loop.json 'm["all"]["taken_branches"]' $((999 + 499 + 2))
expect loop loop.json 'm["moved"]["instructions"]' $((1 + 1500 + 1))
expect loop loop.json 'm["all"]["lines"], m["moved"]["lines"]' '(2, 1)'
grep -q "^edge 0x[0-9a-f]* 0x[0-9a-f]* 999 taken$" loop.edges || fail "loop: no edge of 999"

# ---- against single-stepping: whole counts and each instruction's ----
$cc -nostdlib -static -o transfers "$here/transfers.S" || exit 1
if $cc -O2 -o step "$here/step.c" -lZydis -lZycore; then
	./step ./transfers >step.out || fail "transfers: oracle failed"
	branches --json --edges transfers.edges ./transfers >transfers.json ||
		fail "transfers: status $?"
	expect transfers transfers.json '" ".join(str(m["all"][k]) for k in ("instructions",
		"cond", "cond_taken", "jumps", "ind_jumps", "calls", "ind_calls", "returns"))' \
		"$(head -n 1 step.out)"
	expect transfers transfers.json 'j["status"], j["interrupted"]' '(0, 0)'
	python3 - <<'EOF' || fail "transfers: counts of single instructions differ"
import sys
step = {int(a, 16): int(c) for a, c in map(str.split, list(open("step.out"))[1:])}
seen = {}
for line in open("transfers.edges"):
    word = line.split()
    if word[0] == "block":
        start, size, nr, count = int(word[1], 16), *map(int, word[2:])
        inside = [a for a in step if start <= a < start + size]
        if len(inside) != nr:
            sys.exit(f"{line}: {len(inside)} instructions")
        seen.update((a, count) for a in inside)
if not step or seen != step:
    sys.exit(1)
EOF
else
	fail "the oracle cannot be built"
fi

# ---- dynamic PIE, a library loaded late, threads, a forked child ----
cat >lib.c <<'EOF'
void lib_loop(long n);
void lib_loop(long n)
{
	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}
EOF
cat >main.c <<'EOF'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *arg)
{
	long n = 10000;
	(void)arg;
	__asm__ volatile(".globl hot\nhot: dec %0; jnz hot" : "+r"(n));
	return NULL;
}
int main(void)
{
	void (*loop)(long) = NULL;
	pthread_t threads[8];
	void *lib = dlopen("./lib.so", RTLD_NOW);
	if (lib)
		*(void **)&loop = dlsym(lib, "lib_loop");
	if (!loop)
		return 1;
	loop(7000);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pid_t child = fork();
	if (!child) {
		loop(3000);	/* a child is another process: not counted */
		_exit(0);
	}
	waitpid(child, NULL, 0);
	puts("done");
	return 0;
}
EOF
$cc -O1 -shared -fPIC -o lib.so lib.c && $cc -O1 -fPIE -pie -o main main.c -pthread || exit 1
branches --json --edges main.edges --stdout main.out ./main >main.json || fail "main: status $?"
[ "$(cat main.out)" = "done" ] || fail "main: wrong output"
hot=$(printf '%#x' "0x$(nm main | awk '$3 == "hot" { print $1 }')")
awk -v hot="$hot" '$1 == "block" && $2 == hot && $5 == 80000 { ok = 1 } END { exit !ok }' main.edges ||
	fail "main: the threads' loop is not counted 80000 times"
awk -v hot="$hot" '$1 == "edge" && $3 == hot && $4 == 8 * 9999 && $5 == "taken" { ok = 1 }
	END { exit !ok }' main.edges || fail "main: the threads' branch is not taken 79992 times"
expect library main.json 'f("/lib.so")["all"]["cond"] in range(7000, 7020)' True
branches --edges lib.edges --object ./lib.so ./main >/dev/null || fail "lib: status $?"
grep -q "^edge 0x[0-9a-f]* 0x[0-9a-f]* 6999 taken$" lib.edges || fail "lib: no edge of 6999"
branches --json ./main >again.json || fail "main again: status $?"
expect "second run" again.json 'm["all"]' "$(count main.json 'm["all"]')"

# ---- patches ----
cat >patch.S <<'EOF'
	.globl _start, patch
	.text
_start:	cmpq	$1, (%rsp)
	jne	patch + 5	/* an argument was given: fine */
#ifdef INSIDE
	jmp	patch + 2
#endif
patch:	.byte	0xe9, 0, 0x90, 0x90, 0x90	/* never executed from its start */
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.section .note.GNU-stack, "", @progbits
EOF
$cc -nostdlib -static -DINSIDE -o inside patch.S || exit 1
sed -i 's/0xe9, 0, 0x90, 0x90, 0x90/0xe9, 0, 0, 0, 0/' patch.S
$cc -nostdlib -static -o start patch.S || exit 1
for p in inside start; do
	echo "0x$(nm $p | awk '$3 == "patch" { print $1 }') 5	# the entry's patch" >$p.patches
	echo "file=$dir/lib.so" >>$p.patches
	echo "0 100000" >>$p.patches
done
branches --patches start.patches ./start >/dev/null || fail "a patch's start: status $?"
branches --patches inside.patches ./inside -- x >/dev/null || fail "behind a patch: status $?"
ends 99 "inside a patch" --patches inside.patches ./inside
grep -q "inside the patch at 0x" err.txt || fail "inside a patch: no message"
branches ./inside >/dev/null 2>&1 || fail "without the list the same program does not pass"
ends 99 "a patch in a library" --patches start.patches ./main
echo "0x1000 five" >bad.patches
ends 1 "a bad list" --patches bad.patches ./start
grep -q "bad.patches: line 1" err.txt || fail "bad patches: no message"

# ---- comparison, bad use ----
sed 's/\$1000/$400/' loop.S >short.S
$cc -nostdlib -static -o short short.S || exit 1
branches --json --compare ./loop ./short >compare.json || fail "compare: status $?"
python3 - <<'EOF' || fail "compare: wrong ratios"
import json
c = json.load(open("compare.json"))["compared"]
t = c["main"]["taken_branches"]
assert (t["a"], t["b"]) == (1500, 900) and t["ratio"] == 0.6, t
assert abs(c["moved_share"] - 1502 / 2307) < 1e-9, c["moved_share"]
assert c["same_output"] and c["same_status"]
EOF
printf '#include <stdio.h>\nint main(void) { puts(WORD); return 0; }\n' >say.c
$cc -DWORD='"one 1"' -o one say.c && $cc -DWORD='"one 2"' -o two say.c || exit 1
ends 6 "different output" --compare ./one ./two
branches --compare --filter 'tr -d 0-9' ./one ./two >/dev/null || fail "--filter: status $?"
ends 2 "one program to compare" --compare ./one
ends 1 "a missing program" ./nothing-here

[ $nr_failed = 0 ]
