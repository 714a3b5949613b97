#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: the table lists all programs
# check-all: each exit status of each program, and signals at many moments
# Each exit status that a manual page documents has a test that causes it. Standard output may be
# closed, full, or read by a process that ends early. An interrupt leaves nothing behind.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-files.sh"
scratch exits
export PATH=$BUILD:$PATH TMPDIR=$dir/tmp
mkdir tmp
nr_failed=0 nr=0
for tool in gcc objdump; do
	command -v $tool >/dev/null || { echo "skip: $tool is missing"; exit 77; }
done

declare -A seen=()
# ends STATUS PROGRAM ARGUMENT...: ends with STATUS; a failure prints one line
ends() {
	local want=$1 got=0
	shift
	nr=$((nr + 1))
	"$@" >out.txt 2>err.txt </dev/null || got=$?
	[ $got = "$want" ] || fail "$*: status $got, not $want: $(head -n 3 err.txt)"
	seen[$1,$want]=yes
	case $got in
	0 | 5 | 6) ;;
	*) grep -q "^$1: \|^$1 [a-z]*: " err.txt || fail "$*: no message of $1: $(head -n 3 err.txt)" ;;
	esac
}

make_files
objcopy --add-section .gopclntab=prog.c prog golike || exit 1

# ---- morph-stats
ends 0 morph-stats -d one.db import cg.out
{ sed -n '1,6p' cg.out; echo "0x$(nm prog | awk '/ hot$/ {print $1}') 0 7"; echo "totals: 7"; } >cg1.out
ends 0 morph-stats -d few.db import cg1.out
cp s.db s2.db
commands=$(morph-stats --help | sed -n '/^Commands:/,/^[^ ]/s/^  \([a-z]*\) .*/\1/p')
# remember writes to its database, so it gets a copy.
cp s.db r.db
cp s.db t.db
sqlite3 t.db "INSERT INTO trial VALUES(1, x'00', 0, 'cpu', 'f', '0x1:stay', 'faster', 9, 1.1, 1.0, 1.2, 1)" || exit 1
# An audit inside a program, by a program that acts as an audited one.
morphd run --audit=ring -d audit.db >/dev/null 2>&1 &
reader=$!
audit_listens $reader
"$BUILD/tools/audit-writer" functions=2 pairs=200 seconds=5 ring >/dev/null
kill -INT $reader
wait $reader
# One line for each command that prints something; add new commands here.
declare -A lines=([status]="-d s.db status" [query]="-d s.db query" [annotate]="-d s.db annotate hot"
	[diff]="diff s.db s2.db" [heat]="-d s.db heat prog" [flame]="-d s.db flame"
	[activity]="-d run.db activity" [calls]="-d run.db calls" [audit]="-d audit.db audit" [import]="-d i.db import cg.out" [merge]="merge m.db s.db"
	[remember]="-d r.db remember --min-samples=1" [trials]="-d t.db trials"
	[export]="-d s.db export --format=json")
declare -A nothing=([diff]="diff none.db s.db" [heat]="-d none.db heat prog" [merge]="merge m.db none.db"
	[annotate]="-d none.db annotate hot" [export]="-d none.db export --format=folded" [import]="")
if morphd run --stacks -d run.db -- ./prog 20000000 >/dev/null 2>&1; then
	sampling=yes
	# Repeat until there are some samples, also on a slow machine.
	for _ in {1..20}; do
		! morph-stats -d run.db activity >/dev/null 2>&1 ||
			! morph-stats -d run.db calls >/dev/null 2>&1 || break
		morphd run --stacks -d run.db -- ./prog 200000000 >/dev/null 2>&1
	done
else
	sampling='' lines[activity]='' lines[calls]=''
	echo "morphd samples nothing here: its part is left out"
fi
for c in $commands; do
	[ -n "${lines[$c]+there}" ] || fail "morph-stats $c is not tested here"
	rm -f i.db* m.db*
	line=${lines[$c]:-}
	# shellcheck disable=SC2086
	[ -z "$line" ] || ends 0 morph-stats $line
	ends 2 morph-stats $c --no-such-option
	ends 2 morph-stats -d s.db $c --db
	line=${nothing[$c]--d none.db $c}
	# shellcheck disable=SC2086
	[ -z "$line" ] || ends 3 morph-stats $line
	echo "no database, no database, no database" >junk.db
	case $c in
	diff) ends 1 morph-stats diff junk.db s.db ;;
	merge) ends 1 morph-stats merge m.db junk.db ;;
	import) ends 1 morph-stats -d junk.db import cg.out ;;
	annotate) ends 1 morph-stats -d junk.db annotate hot ;;
	heat) ends 1 morph-stats -d junk.db heat prog ;;
	export) ends 1 morph-stats -d junk.db export --format=json ;;
	*) ends 1 morph-stats -d junk.db "$c" ;;
	esac
done
[ ! -e none.db ] || fail "a question made a database"
ends 2 morph-stats
ends 2 morph-stats frobnicate
for o in query,--sort=luck query,--by=colour query,--since=never query,--limit=x annotate,--color=red \
	export,--format=xml export,--linker=ldd export,--branches=all import,--format=xml diff,--sort=luck \
	diff,--at=never; do
	ends 2 morph-stats "${o%%,*}" "${o#*,}" s.db
done

# ---- morph-optimize
ends 0 morph-optimize --db=s.db -o fast prog
ends 1 morph-optimize --db=s.db -o x no-such-file
ends 1 morph-optimize --db=s.db -o no/such/directory/x prog
ends 1 morph-optimize --db=junk.db -o x prog
ends 0 morph-optimize --db=s.db prog
ends 2 morph-optimize -o x
ends 2 morph-optimize train -o x
ends 3 morph-optimize --db=none.db -o x prog
ends 3 morph-optimize --db=few.db -o x prog
ends 3 morph-optimize --db=s.db --since=@99999999999 -o x prog
ends 4 morph-optimize --db=s.db -o x golike
gcc -O2 -fno-pie -c prog.c -o prog.o && gcc -g -gz -O2 -fno-pie -c prog.c -o debug.o || exit 1
ends 0 morph-optimize --db=s.db --program=prog -o fast.o prog.o
ends 0 morph-optimize verify prog.o fast.o
ends 2 morph-optimize --db=s.db -o x prog.o
ends 3 morph-optimize --db=none.db --program=prog -o x prog.o
ends 4 morph-optimize --db=s.db --program=prog -o x debug.o
ends 4 morph-optimize verify prog.o debug.o
ends 4 morph-optimize restore prog
ends 4 morph-optimize adopt prog prog
# One program takes too long for enough pairs; the other prints its own size.
sed 's/printf.*/usleep(700000); &/; 1i #include <unistd.h>' prog.c >long.c
gcc -O2 -Wl,--build-id long.c -o long || exit 1
ends 7 morph-optimize train --audit-seconds=1 --db=trials.db --budget=1 -o x -- ./long 5
[ -s x.undecided ] && [ -s x.undecided.csv ] || fail "what the audit could not decide is not kept"
ends 2 morph-optimize train --audit-seconds=1 --audit-pairs=8 -o x -- ./long 5
ends 2 morph-optimize train --audit-pairs=9:8 -o x -- ./long 5
ends 2 morph-optimize --audit-pairs=8 -o x prog
ends 2 morph-optimize refine --db=s.db -o x prog
# Nobody waits for a FIFO's writer, and a damaged store has one message.
mkfifo fifo || exit 1
for command in "morph-optimize -o x fifo" "morph-optimize refine --db=s.db -o x fifo -- ./prog" \
	"morph-optimize restore fifo" "morph-audit prog fifo" "morph-audit fifo prog"; do
	# shellcheck disable=SC2086
	timeout 600 $command >out.txt 2>err.txt </dev/null
	[ $? = 1 ] && grep -q "^${command%% *}: .*fifo: not a regular file" err.txt || fail "$command: $(cat err.txt)"
done
head -c 5000 s.db >torn.db
ends 1 morph-optimize refine --db=torn.db -o x prog -- ./prog
one_line "refine with a damaged store"
ends 3 morph-optimize refine --db=none.db -o x prog -- ./prog
ends 1 morph-optimize refine --db=s.db -o x no-such-file -- ./prog
sed 's/printf.*/struct stat st; stat("\/proc\/self\/exe", \&st); printf("%ld\\n", (long)st.st_size + hot(5));/
	1i #include <sys/stat.h>' prog.c >size.c
gcc -O2 -Wl,--build-id size.c -o size || exit 1
ends 6 morph-optimize train --db=trials.db -o x -- ./size
# This program does more work if its file is larger, as the new version's is.
cat >weigh.c <<'EOF2'
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
__attribute__((noinline)) static unsigned int mix(unsigned int x)
{
	return x % 7 == 3 ? x * 3 : (x ^ 0x5bd1e995) + (x & 1 ? 1 : 77);
}
int main(int argc, char **argv)
{
	struct stat st;
	unsigned int x = 1;

	stat("/proc/self/exe", &st);
	for (long i = 0; i < (st.st_size > atol(argv[argc - 1]) ? 40000000 : 4000000); i++)
		x = mix(x) + (unsigned int)i % 3;
	puts(x ? "done" : "nought");
	return 0;
}
EOF2
gcc -O2 -Wl,--build-id weigh.c -o weigh || exit 1
rm -f x.undecided
ends 5 morph-optimize train --db=trials.db --budget=2 -o x -- ./weigh "$(stat -c %s weigh)"
[ ! -e x.undecided ] || fail "a version that is slower is kept"
[ ! -e x ] || fail "morph-optimize wrote a file although it failed"

# ---- morph-audit: the other program is slower, or behaves differently
audit="--warmup=0 --pairs=2:40"
printf '#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done\n' >slow && chmod +x slow
printf '#!/bin/sh\n:\n' >quick && chmod +x quick
# shellcheck disable=SC2086
{
	ends 0 morph-audit $audit ./slow ./quick
	ends 5 morph-audit $audit ./quick ./slow
	ends 6 morph-audit $audit ./prog /bin/true
	ends 1 morph-audit $audit ./prog ./no-such-program
	ends 1 morph-audit $audit --stdin=no-such-file ./prog ./prog
	ends 2 morph-audit ./golike
	ends 2 morph-audit --metric=luck ./prog ./prog
	ends 2 morph-audit --no-such-option ./prog ./prog
	ends 2 morph-audit --compilations ./prog
	ends 1 morph-audit --compilations ./prog ./prog
}
cat >marked.c <<'C'
#include "editor/marker/plugin/morph_marker.h"
int main(int argc, char **argv)
{
	for (; argc > 0; argc--)
		MORPH_MARKER(arguments);
	return !argv[0];
}
C
gcc -O2 -I"$root" -Wl,--emit-relocs marked.c -o marked || fail "marked.c"
if [ -n "$sampling" ]; then
	ends 3 morph-audit --compilations --pairs=2:2 ./marked ./marked
else
	seen[morph-audit,3]=elsewhere
fi

# ---- morphd
ends 2 morphd --no-such-option
ends 2 morphd --source=luck
ends 2 morphd run
ends 2 morphd run --rate=fast -- true
ends 1 morphd --input=no-such-file -d r.db
ends 1 morphd --input=cg.out -d r.db
if [ -n "$sampling" ]; then
	ends 0 morphd run -d r.db --record=r.rec -- true
	ends 0 morphd --input=r.rec -d r2.db
	for status in 3 5 77; do
		nr=$((nr + 1))
		morphd run -d r.db -- sh -c "exit $status" 2>/dev/null
		[ $? = $status ] || fail "morphd run does not exit as its command ($status)"
	done
	morphd run -d r.db -- sh -c 'kill -TERM $$' 2>/dev/null
	[ $? = 143 ] || fail "morphd run of what a signal ends is not 128 + 15"
	ends 127 morphd run -d r.db -- ./no-such-program
	ends 126 morphd run -d r.db -- ./cg.out
else
	seen[morphd,0]=elsewhere
fi

# ---- morph-fleet: without a server; e2e/fleet has one
pages="morphd.8 morph-stats.1 morph-optimize.1 morph-audit.1"
if [ -x "$BUILD/morph-fleet" ]; then
	nowhere="host=127.0.0.1 port=1 dbname=x user=x"
	cp s.db fleet.db
	ends 2 morph-fleet
	ends 2 morph-fleet frobnicate
	ends 2 morph-fleet push --config=/dev/null --db=fleet.db
	ends 2 morph-fleet push --rate=fast -d "$nowhere"
	ends 2 morph-fleet pull -d "$nowhere"
	ends 75 morph-fleet hosts -d "$nowhere"
	ends 2 morph-fleet hosts -d "$nowhere" a000 b000
	ends 3 morph-fleet push -d "$nowhere" --db=none.db
	ends 75 morph-fleet push -d "$nowhere" --db=fleet.db --give-up=0
	ends 75 morph-fleet pull -d "$nowhere" -o x prog
	ends 75 morph-fleet modules -d "$nowhere"
	ends 1 morph-fleet push -d "$nowhere" --db=junk.db
	ends 75 morph-fleet check -d "$nowhere"
	ends 2 morph-fleet request prog --output=x -d "$nowhere"
	ends 2 morph-fleet build -d "$nowhere"
	ends 2 morph-fleet install -d "$nowhere"
	ends 75 morph-fleet request -d "$nowhere" prog
	ends 75 morph-fleet builds -d "$nowhere"
	ends 75 morph-fleet build -d "$nowhere" --once --originals=.
	mkdir fleet-etc
	ends 2 morph-fleet canary frobnicate -d "$nowhere"
	ends 2 morph-fleet canary promote -d "$nowhere"
	ends 2 morph-fleet canary policy -d "$nowhere" soak=1d
	ends 75 morph-fleet canary policy -d "$nowhere" soak_s=1d
	ends 2 morph-fleet renew --config=/dev/null
	ends 2 morph-fleet report x -d "$nowhere"
	ends 75 morph-fleet canary -d "$nowhere"
	ends 75 morph-fleet report -d "$nowhere" -o x.html
	mkdir -m 755 fleet-leases
	ends 75 morph-fleet renew -d "$nowhere" --db=fleet.db --state-dir=fleet-leases
	echo junk >fleet-leases/fleet-leases.json
	ends 1 morph-fleet renew -d "$nowhere" --db=fleet.db --state-dir=fleet-leases
	ends 75 morph-fleet install -d "$nowhere" --db=fleet.db --state-dir=fleet-state --policy=fleet-etc prog
	seen[morph-fleet,0]=elsewhere
	seen[morph-fleet,4]=elsewhere
	pages="$pages morph-fleet.1"
fi

# The tests above have seen every status that the pages document.
for page in $pages; do
	for status in $(sed -n '/^.Sh EXIT STATUS/,/^.Sh EX[^I]/s/^\.It \([0-9]*\)$/\1/p' \
		"$root/Documentation/$page"); do
		[ -n "${seen[${page%.*},$status]:-}" ] || fail "$page: nothing here ends with $status"
	done
done

# ---- version and messages have one form
for p in morph-stats "morph-stats query" "morph-stats export" morph-optimize morph-audit morphd "morphd run"; do
	nr=$((nr + 1))
	# shellcheck disable=SC2086
	version=$($p --version </dev/null 2>&1)
	[[ $version =~ ^${p%% *}\ [^\ ]+$ ]] || fail "$p --version: $version"
	[ "${version#* }" = "$(morphd --version | cut -d' ' -f2)" ] || fail "$p: another version: $version"
	# shellcheck disable=SC2086
	$p --no-such-option 2>err.txt </dev/null >out.txt
	grep -q "^Try .*$p --help' or " err.txt ||
		fail "$p --no-such-option: $(cat err.txt)"
	[ ! -s out.txt ] || fail "$p --no-such-option: writes to standard output"
done

# ---- standard output that cannot be written
# full WHAT COMMAND...: fails, with one line that says why
full() {
	local got=0 program=$1
	nr=$((nr + 2))
	"$@" >/dev/full 2>err.txt </dev/null || got=$?
	[ $got = 1 ] || fail "$* >/dev/full: status $got"
	grep -q "^$program: standard output: No space left" err.txt || fail "$* >/dev/full: $(cat err.txt)"
	[ "$(grep -c "standard output" err.txt)" = 1 ] || fail "$*: says it twice: $(cat err.txt)"
	got=0
	"$@" >&- 2>err.txt </dev/null || got=$?
	[ $got = 1 ] || fail "$* >&-: status $got"
	grep -q "^$program: standard output: Bad file descriptor" err.txt || fail "$* >&-: $(cat err.txt)"
}
sums() {
	cksum s.db s2.db prog golike cg.out fast
}
before=$(sums)
for c in $commands; do
	rm -f i.db* m.db*
	# shellcheck disable=SC2086
	[ -z "${lines[$c]:-}" ] || {
		"morph-stats" ${lines[$c]} >/dev/null 2>&1
		rm -f i.db* m.db*
		case $c in
		import | merge) # a second run would find the first one's result
			for to in /dev/full closed; do
				rm -f i.db* m.db*
				if [ $to = closed ]; then
					morph-stats ${lines[$c]} >&- 2>err.txt
				else
					morph-stats ${lines[$c]} >$to 2>err.txt
				fi
				[ $? = 1 ] || fail "morph-stats $c: to $to: not 1"
				grep -q '^morph-stats: standard output: ' err.txt ||
					fail "morph-stats $c: to $to: $(cat err.txt)"
			done ;;
		*) full morph-stats ${lines[$c]} ;;
		esac
		case $c in import | merge | export) ;; *) full morph-stats ${lines[$c]} --json ;; esac
	}
	full morph-stats "$c" --help
done
for f in folded callgrind pprof fdata order; do
	full morph-stats -d s.db export --format=$f
done
for p in morph-stats morph-optimize morph-audit morphd "morphd run"; do
	for o in --help --usage --version; do
		# shellcheck disable=SC2086
		full $p $o
	done
done
full morph-optimize --all --dry-run prog
full morph-optimize --all --json -o fast2 prog
# shellcheck disable=SC2086
{
	full morph-audit $audit ./prog ./prog
	full morph-audit $audit --json ./prog ./prog
}
if [ -n "$sampling" ]; then
	full morphd --input=r.rec -d r3.db --stats
	full morphd --input=r.rec -d r3.db --json
fi
# Even with no descriptor open, no report may go into a file that is opened later.
morph-optimize --all -o closed prog <&- >&- 2>&-
[ ! -e closed ] || [ "$(./closed)" = "$(./prog)" ] || fail "a report went into the output"
morph-stats -d closed.db import cg.out <&- >&- 2>&-
[ ! -e closed.db ] || morph-stats -d closed.db status --check >/dev/null ||
	fail "a report went into the database"
[ "$before" = "$(sums)" ] || fail "a closed standard output changed an input"
# The executed command finds a closed descriptor closed.
[ -z "$sampling" ] || [ "$(morphd run -d r.db -- sh -c '[ -e /proc/self/fd/0 ] && echo open' <&- 2>/dev/null)" = "" ] ||
	fail "morphd run opens what was closed for its command"

# ---- a reader that ends after one line: the program ends quietly
for line in "morph-stats -d s.db export --format=json" "morph-stats -d s.db query" \
	"morph-stats -d s.db annotate hot" "morph-stats --help" "morph-optimize --help" \
	"morph-audit --help"; do
	nr=$((nr + 1))
	# shellcheck disable=SC2086
	first=$(timeout 600 $line 2>err.txt | head -n 1)
	[ -n "$first" ] || fail "$line | head -n 1: nothing"
	[ "$(wc -l <err.txt)" -le 1 ] || fail "$line | head -n 1: $(cat err.txt)"
done

# ---- an interrupt at many moments: a result is complete or missing
names() {
	find . -name tmp -prune -o -type f ! -name '*.txt' ! -name 'r*.db*' ! -name '*-wal' ! -name '*-shm' -print | sort
}
# interrupted RESULT COMMAND...: RESULT is complete or missing
interrupted() {
	local result=$1 i before
	shift
	rm -f "$result"
	before=$(names)
	for i in 0 1 2 3 5 8 13 20 30 45 70 100; do
		nr=$((nr + 1))
		rm -f "$result" "$result-wal" "$result-shm"
		# A background job would ignore SIGINT without set -m.
		bash -c 'set -m; "$@" & sleep "$0"; kill -INT $! 2>/dev/null; wait $!' \
			"$(printf '0.%03d' $i)" "$@" >/dev/null 2>&1
		[ "$(names | grep -vxF "./$result")" = "$before" ] ||
			fail "$1 interrupted leaves $(diff <(names) <(echo "$before"))"
	done
	[ -z "$(ls tmp)" ] || fail "$1 interrupted leaves $(ls tmp)"
}
interrupted int-fast morph-optimize --db=s.db -o int-fast prog
[ ! -e int-fast ] || [ "$(./int-fast)" = "$(./prog)" ] || fail "half an output"
interrupted int-m.db morph-stats merge int-m.db s.db few.db
[ ! -e int-m.db ] || morph-stats -d int-m.db status --check >/dev/null || fail "half a database"
interrupted int-i.db morph-stats -d int-i.db import cg.out
[ ! -e int-i.db ] || morph-stats -d int-i.db status --check >/dev/null || fail "half an import"
interrupted int-f.svg morph-stats -d s.db flame -o int-f.svg
interrupted int-h.html morph-stats -d s.db heat -o int-h.html prog
# shellcheck disable=SC2086
interrupted int-none morph-audit $audit ./slow ./quick
echo "$nr checks, $nr_failed failures"
[ $nr_failed = 0 ]
