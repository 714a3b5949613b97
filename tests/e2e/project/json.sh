#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: json.md lists the fields of all programs
# The output of each program with --json is valid whatever the names of files and functions, and has
# exactly the fields that Documentation/json.md documents. It takes half a minute: each program has to print each of its
# outputs once, of samples, audits and a fleet as well.
. "$(dirname "$0")/../lib.sh"
scratch json
export PATH=$BUILD:$BUILD/tools:$PATH
nr_failed=0
for tool in python3 gcc objdump jq sqlite3; do
	command -v $tool >/dev/null || { echo "skip: $tool is missing"; exit 77; }
done

cat >prog.c <<'C'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long bad(long n) __asm__("b\xff" "d");
static inline __attribute__((always_inline)) long step(long s, long i)
{
	return s + (i * 5) % 11;
}
__attribute__((noinline)) long bad(long n)
{
	long s = 0;
	for (long i = 0; i < n; i++) {
		if (i % 7 == 3)
			s ^= i;
		s = step(s, i);
	}
	return s;
}
__attribute__((noinline)) long other(long n)
{
	long s = 1;
	for (long i = 0; i < n; i++)
		s = s * 3 + bad(i & 7);
	return s;
}
/* Gets its own address, so that it is left alone. */
__attribute__((noinline)) long alone(long n)
{
	void *here;
	__asm__("lea 0(%%rip), %0" : "=r"(here));
	return n + (here != NULL);
}
/* Belongs to no function: no unwind information, no size. */
long lone(long n);
__asm__(".text\nlone: lea 1(%rdi), %rax\n ret\n");
int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000, s = 0;

	for (long i = 0; i < 8 * n; i++)
		s = s * 5 + (i ^ s >> 3);
	printf("%ld\n", s + bad(n) + other(n) + lone(alone(n)));
	return 0;
}
C
# The name holds valid UTF-8, an invalid byte, a quote and a backslash.
prog=$'h\xc3\xbc\xff"\\n' bad=$'b\xffd'
gcc -g -O2 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs prog.c -o "$prog" || exit 1
readarray -t code < <(objdump -d --no-show-raw-insn "./$prog" | LC_ALL=C sed -nE \
	-e '/^[0-9a-f]+ <(.*)>:$/{s//\1/;h;}' -e '/^ +([0-9a-f]+):.*/{s//0x\1/;G;s/\n/ /p;}')
# counts NUMBER FUNCTION: callgrind's lines for each instruction of FUNCTION
counts() {
	local line
	for line in "${code[@]}"; do
		[ "${line#* }" != "$2" ] || echo "${line%% *} 0 $1"
	done
}
{
	printf 'version: 1\npositions: instr line\nevents: Ir\nob=%s\nfl=x\nfn=a\n' "$dir/$prog"
	counts 50000 "$bad"
	counts 3000 other
	counts 2000 alone
	counts 1000 lone
} >cg.body
# with_total FILE: append the total as callgrind does
with_total() {
	awk '{print} /^0x/ {sum += $3} END {print "totals: " sum}' "$1"
}
with_total cg.body >cg.out
[ "$(wc -l <cg.out)" -gt 30 ] || { echo "FAIL: too few instructions: $(cat cg.out)"; exit 1; }

# says NAME STATUS COMMAND...: the output goes to NAME.json
says() {
	local name=$1 want=$2 got=0
	shift 2
	"$@" >"$name.json" 2>"$name.err" || got=$?
	[ $got = "$want" ] || fail "$name: status $got, not $want: $(head -n 3 "$name.err")"
}
stats() {
	local name=$1
	shift
	says "$name" 0 morph-stats --json -d s.db "$@"
}
stats import import cg.out
cp s.db old.db
awk '/^0x/ && n++ % 2 {$3 *= 3} {print}' cg.body >cg2.body
with_total cg2.body >cg2.out
says import2 0 morph-stats --json -d new.db import cg2.out
stats status status
stats check status --check
stats modules query
stats functions query --binary="./$prog"
stats blocks query --binary="./$prog" --function="$bad"
cp s.db paths.db
first=$(printf '%s\n' "${code[@]}" | LC_ALL=C grep -a -m 1 " $bad\$" | cut -d' ' -f1)
add-path paths.db 0 "$first" $((first + 16)) || fail "add-path"
says paths 0 morph-stats --json -d paths.db query --by=path --binary="./$prog"
says paths-status 0 morph-stats --json -d paths.db status --check
stats annotate annotate --binary="./$prog" "$bad"
stats heat heat "./$prog"
stats flame flame
says merge 0 morph-stats merge --json merged.db old.db new.db
for by in module function block; do
	says "diff-$by" 0 morph-stats diff --json --by=$by --binary="./$prog" old.db new.db
done
stats export export
says export-format 0 morph-stats -d s.db export --format=json
cmp export.json export-format.json || fail "export --json is not export --format=json"
says optimize 0 morph-optimize --json --db=s.db -o fast "./$prog"
says all 0 morph-optimize --report=json --all --dry-run "./$prog"
gcc -O2 -fcf-protection=none -fno-pie -no-pie "$root/tests/data/own_code/refused.c" -o refused || exit 1
says refused 0 morph-optimize --json --all -o refused.morph ./refused
gcc -O2 -I"$root" -Wl,--emit-relocs "$root/tests/data/marker.c" -o marked || exit 1
says markers 0 morph-optimize --json --all --markers=remove --dry-run ./marked
says explain 0 morph-optimize --json --explain --all --dry-run "./$prog"
says verify 0 morph-optimize verify --json --explain "./$prog" fast
printf '%s\n' '*:start=5' '*:loop=3' nowhere:end >adjustments
gcc -O2 -c "$root/tests/e2e/object/hot.c" -o hot.o && gcc -O2 -c "$root/tests/e2e/object/other.c" -o other.o &&
	gcc hot.o other.o -o from-objects && gcc -g -O2 -c "$root/tests/e2e/object/hot.c" -o debug.o && rm -f objects.a &&
	ar rcs objects.a hot.o debug.o || fail "objects"
says object 0 morph-optimize --json --all --program=./from-objects hot.o -o fast.o
says archive 0 morph-optimize --json --all --program=./from-objects objects.a -o fast.a
says verify-object 0 morph-optimize verify --json hot.o fast.o
says adjusted 0 morph-optimize --json --all --adjust=@adjustments --dry-run "./$prog"
says stress 0 morph-optimize --report=json --lab=stress-layout=4 --lab=stress-inline=4 --dry-run "./$prog"
says counting 0 morph-optimize instrument --report=json --kind=edges --counts=c --dry-run "./$prog"
objdump -t "./$prog" | awk '$NF == "main" { sub(/^0*/, "", $1); print "0x" $1 "<outside" }' >places
says metering 0 morph-optimize instrument --report=json --kind=meter --meter=places --counts=c --dry-run "./$prog"
says auditing 0 morph-optimize instrument --report=json --kind=audit --counts=c --db=s.db --min-samples=1 --only=other --dry-run "./$prog"
says numbering 0 morph-optimize instrument --report=json --kind=pep,poll --counts=c --db=s.db --min-samples=1 --dry-run "./$prog"
says clocking 0 morph-optimize instrument --report=json --kind=calls --counts=c --db=s.db --min-samples=1 --dry-run "./$prog"
stats heat-after heat --after=fast "./$prog"
cp "$prog" "in $prog"
stats moved annotate --binary=fast "$bad"
stats calls annotate --binary="./$prog" other
stats untouched annotate --binary=fast alone
# Another build, in which one function is the same.
sed 's/n + (here/2 * n + (here/' prog.c >prog2.c
gcc -g -O2 -fno-pie -no-pie -Wl,--build-id prog2.c -o prog2 || exit 1
LC_ALL=C sed "s|^ob=.*|ob=$dir/prog2|" cg.out >cg3.out
says import3 0 morph-stats --json -d other.db import cg3.out
says diff-builds 0 morph-stats diff --json --binary="./$prog" --binary=prog2 old.db other.db
# Remember the first build's counts, and use them for the second build; and a module whose file has
# been replaced by another.
stats remember remember --min-samples=1 --module="$prog" --binary="./$prog"
says remember-other 3 morph-stats --json -d other.db remember --module=prog2 --binary="./$prog"
says stale 0 morph-optimize --json --db=s.db --stale="./$prog" --dry-run prog2
says diff-days 0 morph-stats diff --json -d s.db --before=2026-01-01.. --after=2026-01-02..
says in-place 0 morph-optimize --json --db=s.db --in-place --backup-dir=kept "in $prog"
says in-place-back 0 morph-optimize restore --json --backup-dir=kept "in $prog"
says adopt 0 morph-optimize adopt --json --backup-dir=kept "in $prog" fast
says restore 0 morph-optimize restore --json --backup-dir=kept "in $prog"
audit="morph-audit --json --warmup=0 --pairs=2:8"
$audit "./$prog" fast -- 100000 >audit.json 2>audit.err
case $? in 0 | 5) ;; *) fail "morph-audit: $(cat audit.err)" ;; esac
says audit-failed 1 $audit "./$prog" /nothing/here
says differs 6 $audit "./$prog" /bin/true
# Two compilations with markers by hand, one of which runs more rounds of one loop.
cat >marked.c <<'C'
#include <stdio.h>
#include "editor/marker/plugin/morph_marker.h"
__attribute__((noinline)) unsigned long mix(unsigned long n)
{
	unsigned long h = 1;
	for (unsigned long i = 0; i < n; i++) {
		MORPH_MARKER(mix);
		h = h * 33 ^ i;
	}
	return h;
}
int main(void)
{
	unsigned long h = mix(100000000);
	for (int i = 0; i < ROUNDS; i++) {
		MORPH_MARKER(rounds);
		h ^= h >> 1;
	}
	printf("%d\n", h != 1);
	return 0;
}
C
for rounds in 3 4; do
	gcc -O2 -I"$root" -DROUNDS=$rounds -Wl,--emit-relocs marked.c -o marked$rounds || fail "marked.c"
done
# The command prints to standard output too, so a shell redirects its output.
if morphd run -d probe.db -- true 2>/dev/null; then
	for times in 1 8 64; do
		rm -f run.db*
		says run 0 morphd run --json -d run.db --record=run.rec -- \
			sh -c '"$0" $(($2 * 20000000)) >"$1"' "./$prog" out.txt $times
		# Try longer on a machine that gives few samples.
		! grep -q '"attributed": [1-9][0-9][0-9]' run.json || break
	done
	says collect 0 morphd --json --input=run.rec -d collect.db
	morph-stats annotate -d run.db --binary="./$prog" --json "$bad" >sampled.json
	says activity 0 morph-stats activity --json -d run.db
	for by in process unit user; do
		says activity-$by 0 morph-stats activity --json -d run.db --by=$by
	done
	says mixed 0 morph-stats diff --json old.db run.db
	morphd run --no-kernel -d run.db -- ./fast 20000000 >out.txt 2>&1 || fail "morphd run fast"
	says copies 0 morph-stats query --json -d run.db --by=copy --binary="./$prog"
	if morphd run --stacks --source=perf -d stacks.db -- sh -c '"$0" 40000000 >"$1"' "./$prog" out.txt 2>/dev/null; then
		says contexts 0 morph-stats query --json -d stacks.db --by=context -p 0
		says callees 0 morph-stats query --json -d stacks.db --callees=main
		says graph 0 morph-stats calls --json -d stacks.db -p 0
		says annotate-callers 0 morph-stats annotate --json -d stacks.db --binary="./$prog" "$bad"
		says flame-calls 0 morph-stats flame --json -d stacks.db --calls
	else
		left_out="${left_out:-} stacks"
	fi
	# A planted waiting time, so that there is something to refine; main() stays as fast as it was. A busy machine
	# needs longer until a culprit is found and audited; each attempt has a database of its own.
	for times in 1 4 16; do
		sqlite3 run.db ".backup refine-$times.db"
		morph-optimize refine --json --db=refine-$times.db --min-samples=1 --adjust=other:wait=150 --audit-pairs=2:2 \
			--budget=$((60 * times)) -o refined "./$prog" -- "./$prog" $((1000000 * times)) >refine.json 2>refine.err
		case $? in 0 | 5 | 7) ;; *) fail "refine: $(head -n 3 refine.err)" ;; esac
		! jq -e '.refinement.audit != null' refine.json >/dev/null || break
	done
	says trials 0 morph-stats trials --json -d refine-$times.db
	morph-audit --compilations --json --pairs=14:14 ./marked3 ./marked4 >compilations.json 2>compilations.err
	case $? in 0 | 5) ;; *) fail "compilations: $(cat compilations.err)" ;; esac
else
	echo "morphd samples nothing here: its own output is not looked at"
	left_out=yes
fi

# morph-fleet needs a server, which another process starts.
BUILD=$BUILD bash "$root/tests/e2e/fleet/lib-outputs.sh" "$dir" >fleet.txt 2>&1
case $? in
0) ;;
77) left_out="${left_out:-} fleet" ;;
*) fail "morph-fleet --json: $(cat fleet.txt)" ;;
esac

# An audit inside a program, and one of whole runs as morph-optimize refine would store it.
morph-optimize instrument --kind=audit --all --report=none --counts="$PWD/ring" "$prog" -o audited || fail "audited"
morphd run --audit=ring -d audited.db >/dev/null 2>audited.err &
reader=$!
audit_listens $reader
# On a busy machine the reader may be late, or a short run may have no window.
for _ in {1..5}; do
	./audited 6000000 >/dev/null
done
kill -INT $reader
wait $reader || fail "morphd run --audit: $(cat audited.err)"
python3 - <<'P' || fail "no audit in audited.db"
import sqlite3
db = sqlite3.connect("audited.db")
db.execute("INSERT INTO trial SELECT NULL, original_build_id, original_text_hash, machine, '', '', 'faster', 8, 1.05,"
           " 1.02, 1.08, last_s FROM program_audit")
db.commit()
P
says decided 0 morph-optimize --json --db=s.db --audited=audited.db --dry-run "./$prog"
gcc -O2 "$root/tests/data/labels/goto_threaded.c" -o threaded || exit 1
says auditing-all 0 morph-optimize instrument --report=json --kind=audit --counts=c --all --dry-run ./threaded
says program-audit 0 morph-stats audit --json -d audited.db "$prog"

# ---- the command morph, with the rewritten program and a job for it
export XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config
cp s.db morph.db
mo() {
	local name=$1 want=$2
	shift 2
	says "morph-$name" "$want" morph --json -d morph.db --backup-dir=kept "$@"
}
mo overview 0
mo list 0 list
cp "$prog" "morph $prog"
mo optimize 0 optimize "./morph $prog"
mo adopt 0 adopt "./morph $prog"
"./morph $prog" 3000000000 >out.txt &
user=$!
awaits '[ "$(readlink /proc/$user/exe)" != "$(readlink /proc/$$/exe)" ]' || fail "morph $prog does not start"
sqlite3 morph.db "UPDATE job SET ratio = 1.1, lowest = 1.05, highest = 1.2" || fail "sqlite3"
mo undo 0 undo "./morph $prog"
mo list-users 0 list
kill $user
"./$prog" 3000000000 >out.txt &
user=$!
awaits '[ "$(readlink /proc/$user/exe)" != "$(readlink /proc/$$/exe)" ]' || fail "$prog does not start"
mo live-place 0 live place $user
morph-optimize --db=s.db --live-at="$(jq .live_at morph-live-place.json)" -o live "./$prog" >/dev/null ||
	fail "no version for a running process"
mo live-adopt 0 live adopt $user live
mo live-status 0 live status $user
mo live-adopt-nobody 1 live adopt 999999999 live
kill $user
sqlite3 morph.db "UPDATE job SET state = 'wanted', ratio = 1.1, lowest = 1.05, highest = 1.2;
	UPDATE history SET ratio = 1.1, lowest = 1.05, highest = 1.2" || fail "sqlite3"
mo overview-measured 0
mo list-measured 0 list
mo explain 0 explain "./$prog"
mo explain-measured 0 explain "./morph $prog"
mo history 0 history
mo top 0 top
mo report 0 report -o report.html
mo watch 0 watch --policy=etc add "./$prog"
mo rules 0 watch --policy=etc list
mo on 0 on --policy=etc --only=/usr/* --except=/opt/*
sqlite3 morph.db "UPDATE job SET state = 'undone'" || fail "sqlite3"
mo optimize-again 0 optimize "./morph $prog"
mo adopt-again 0 adopt "./morph $prog"
sqlite3 morph.db "UPDATE job SET ratio = 1.1, lowest = 1.05, highest = 1.2" || fail "sqlite3"
mo off 0 off --policy=etc
mo optimize-all 0 undo --all

export PYTHONIOENCODING=utf-8
if [ "${1:-}" = --list ]; then
	"$root/scripts/check/jsonfields" --list ./*.json
	exit
fi
"$root/scripts/check/jsonfields" ./*.json >differences.txt 2>&1 || {
	[ -z "${left_out:-}" ] || sed -i '/^\(run\|collect\|activity\|refine\|trials\|compilations\): documented, but nothing/d; /^query: rows\[\]\.\(original\|self_samples\|seconds\|entries\|entries_most\|certainly_new\) is documented, but not printed/d; /^\(nothing\): documented, but nothing/d' differences.txt
	[ ! -s differences.txt ] || fail "fields and Documentation/json.md differ:"
}
cat differences.txt
# Unusual names arrive complete.
python3 - "$dir" <<'P' || fail "names"
import json, sys
want = {"modules": lambda j: [r["module"] for r in j["rows"]], "heat": lambda j: [j["module"]],
        "optimize": lambda j: [j["input"]], "audit": lambda j: [j["a"]["path"]],
        "export": lambda j: [m["path"] for m in j["modules"]]}
bad = 0
for name, of in want.items():
    names = of(json.load(open(f"{name}.json", encoding="utf-8")))
    if not any(n.endswith('h\u00fc\ufffd"\\n') for n in names):
        print(name, names)
        bad = 1
text = open("functions.json", encoding="utf-8").read()
if '"b\ufffdd"' not in text:
    print(text)
    bad = 1
sys.exit(bad)
P

# ---- the comparison notices differences
mkdir -p tree/scripts/check tree/Documentation && cp "$root/scripts/check/jsonfields" tree/scripts/check/
# finds MESSAGE SED: jsonfields reports MESSAGE after SED has changed json.md
finds() {
	sed "$2" "$root/Documentation/json.md" >tree/Documentation/json.md
	tree/scripts/check/jsonfields ./*.json >out.txt 2>&1 && fail "not seen: $1"
	grep -qF -- "$1" out.txt || fail "\"$1\" expected: $(head -n 3 out.txt)"
}
finds "merge: inputs[].nr_modules is not documented" '/^| `inputs\[\].nr_modules`/d'
finds "restore: backup is string: documented as number" 's/^| `backup` | string/| `backup` | number/'
finds "overview: luck is documented, but not printed" '/^| `collector.runs`/s/.*/&\n| `luck` | number | much |/'
finds "flame: not documented" 's/"command": "flame"/"command": "blaze"/'
[ $nr_failed = 0 ]
