#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-optimize's command line: options, exit statuses, messages; it never
# leaves temporary or incomplete files.
. "$(dirname "$0")/../lib.sh"
scratch optcli
need gcc readelf objdump jq python3
mkdir tmp
export TMPDIR=$dir/tmp
optimize=$BUILD/morph-optimize

nothing_left() { # WHAT
	local left
	left=$(find . -name '.morph.*' -o -name 'morph-dry-run*')
	[ -z "$left" ] || fail "$1: left behind: $left"
}

# ends STATUS WHAT ARGS: and leaves no temporary files
ends() {
	command_ends "$1" "$2" "$optimize" "${@:3}"
	nothing_left "$2"
}

# refuses STATUS REGEXP FILE ARGS: one line "morph-optimize: FILE: reason", and no output
refuses() {
	local want=$1 reason=$2 file=$3
	shift 3
	rm -f refused.out
	ends "$want" "$file" "$@" "$file" -o refused.out
	[ "$(wc -l <err.txt)" = 1 ] || fail "$file: $(wc -l <err.txt) lines: $(cat err.txt)"
	says err.txt "^morph-optimize: $file: .*$reason" "$file"
	[ -s out.txt ] && fail "$file: refused, and yet prints a report"
	[ -e refused.out ] && fail "$file: refused, and yet there is an output"
}

cat >prog.c <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int pick(int x)
{
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 7;
	case 2: return x / 5;
	case 3: return x ^ 0x55;
	case 4: return x % 9;
	case 5: return x | 3;
	default: return ~x;
	}
}
__attribute__((noinline)) int never(int x)
{
	if (x < 0)
		abort();
	return x + 1;
}
__attribute__((noinline)) int hot(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		if (i % 7 == 3)
			sum += never(i);
		sum += pick(i);
	}
	return sum;
}
int (*volatile pointer)(int) = pick;
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	printf("%d %d %d\n", hot(n), pointer(n), pointer == pick);
	return 0;
}
END
gcc -O2 -no-pie -fno-pie -Wl,--emit-relocs -o prog prog.c &&
	gcc -O2 -fPIE -pie -Wl,--emit-relocs -o pie prog.c &&
	gcc -O2 -fPIC -shared -Wl,--emit-relocs -o lib.so prog.c &&
	gcc -O2 -o stock prog.c || exit 1
want=$(./prog 12345)

runs() { # FILE WHAT
	local got
	got=$("./$1" 12345) || fail "$2: $1 fails"
	[ "$got" = "$want" ] || fail "$2: $1 prints '$got', not '$want'"
}

# ---- without relocations: moves everything that other evidence allows
ends 0 "a stock file" stock -o stock.fast --all
runs stock.fast "a stock file"

# ---- usage
ends 0 "--help" --help
says out.txt '^Usage: morph-optimize' "--help"
for o in --output --skip --only --dry-run --db --report --min-samples --since --layout --print --print-format \
	--exact-profile --all --threads --in-place; do
	says out.txt "$o" "--help"
	grep -q -e "Fl $(sed 's/^-//' <<<"$o")" "$root/Documentation/morph-optimize.1" ||
		fail "the manual page does not know $o"
done
ends 0 "--version" --version
says out.txt '^morph-optimize ' "--version"
ends 0 "--usage" --usage
ends 2 "nothing"
ends 2 "no file" --all -o x
ends 2 "two files" --all prog pie -o x
ends 2 "-o with --dry-run" --all --dry-run -o x prog
ends 2 "--exact-profile with --all" --all --exact-profile --dry-run prog
ends 2 "--exact-profile with --lab=stress-layout" --lab=stress-layout=1 --exact-profile --dry-run prog
ends 2 "an unknown option" --all --dry-run --fast prog
for o in --report=xml --min-samples=many --min-samples=-1 --min-samples= --since=x --lab=stress-layout=x \
	--lab=stress-layout=9223372036854775808 --lab=stress-inline=x --lab=stress-inline=9223372036854775808 \
	--layout=blocks=best --layout=functions=c3 --lab=line=48 --layout=blocks --lab=no-tails=1 \
	--layout=no-tails --layout=blocks=exttsp --layout=functions=cds --lab=kind=none --lab=best \
	--layout= --layout=ph --layout=blocks=ph, --print= --print=all --print=cfg: --print-format=svg \
	--lab=estimator=guess; do
	ends 2 "$o" --all --dry-run "$o" prog
	says err.txt "${o%%=*}" "$o"
	says err.txt "Try .*--help" "$o"
done
[ -e x ] && fail "a usage error wrote a file"
for o in 3 0 2h 3d 1w today yesterday 2026-01-31 "2026-01-31 12:30" @1767225600; do
	ends 0 "--since=$o" --all --dry-run --since="$o" prog
done

# ---- the usual way
for p in prog pie; do
	for s in 0 1 2 3; do
		ends 0 "--lab=stress-layout=$s $p" --lab=stress-layout=$s "$p" -o "$p.$s"
		runs "$p.$s" "--lab=stress-layout=$s"
	done
	cmp -s "$p.1" "$p.2" && fail "$p: two seeds, one output"
	ends 0 "--all $p" --all "$p" -o "$p.all"
	runs "$p.all" "--all"
	cmp -s "$p.0" "$p.all" && fail "$p: seed 0 is the original order"
	ends 0 "the same seed" --lab=stress-layout=2 "$p" -o again
	cmp "$p.2" again || fail "$p: one seed, two outputs"
	[ "$(stat -c %a "$p.1")" = "$(stat -c %a "$p")" ] || fail "$p: another mode"
done
ends 0 "a library" --all lib.so -o lib.out
says out.txt 'lib.so -> lib.out' "a library"
ends 0 "long options" --all --output=pie.long pie
runs pie.long "long options"
chmod 711 prog
ends 0 "over an old output" --all prog -o prog.1
[ "$(stat -c %a prog.1)" = 711 ] || fail "over an old output: another mode"
runs prog.1 "over an old output"
chmod 755 prog
ends 0 "--report=none" --all --report=none prog -o prog.1
[ -s out.txt ] && fail "--report=none prints"

# ---- dry run
before=$(find . -type f ! -name '*.txt' | sort | xargs cksum)
ends 0 "--dry-run" --all --dry-run prog
says out.txt 'nothing written' "--dry-run"
says out.txt '^  verified ' "--dry-run"
ends 0 "-n" --all -n prog
[ "$before" = "$(find . -type f ! -name '*.txt' | sort | xargs cksum)" ] ||
	fail "--dry-run left something"

# ---- the report, text and JSON
ends 0 "text" --lab=stress-layout=5 prog -o prog.out
cp out.txt text
ends 0 "json" --lab=stress-layout=5 --report=json prog -o prog.out
jq -e . out.txt >/dev/null || fail "json: does not parse"
number() { # REGEXP: the number in its \1, as the text has it
	sed -n "s/$1/\\1/p" text
}
same() { # JSON-PATH REGEXP
	local j t
	j=$(jq -r "$1" out.txt)
	t=$(number "$2")
	[ -n "$t" ] && [ "$j" = "$t" ] || fail "json $1 is '$j', the text says '$t'"
}
same .stress_seed '^  layout  *for tests, with seed \([0-9]*\)$'
same .build_id '^  build-id *\([0-9a-f]*\)$'
same .functions.in_file '^  functions  *\([0-9]*\) in the file.*'
same .functions.considered '^  functions .*, \([0-9]*\) considered.*'
same .functions.moved '^  functions .*, \([0-9]*\) moved.*'
same '.functions.left_alone | length' '^  functions .*, \([0-9]*\) left alone.*'
same .code.blocks '^  code  *\([0-9]*\) blocks.*'
same .code.hot_blocks '^  code .*(\([0-9]*\) hot), .*'
same .code.bytes '^  code .*, \([0-9]*\) bytes.*'
same .code.hot_bytes '^  code .*bytes (\([0-9]*\) hot)$'
same .code.branches_inverted '^  branches  *\([0-9]*\) inverted.*'
same .code.jumps_dropped '^  branches .*, \([0-9]*\) jumps dropped.*'
same .code.jumps_added '^  branches .*, \([0-9]*\) added$'
same .code.patches '^  old code  *\([0-9]*\) patches.*'
same .code.retargeted '^  old code .*, \([0-9]*\) calls.*'
same .code.table_entries '^  old code .*, \([0-9]*\) table entries$'
same .code.pointers '^  pointers  *\([0-9]*\) to.*'
same .code.functions_redirected '^  pointers .* to \([0-9]*\) functions.*'
same .verified.blocks '^  verified  *\([0-9]*\) blocks.*'
same .verified.instructions '^  verified .*, \([0-9]*\) instructions.*'
same .verified.unwind_rows '^  verified .*, \([0-9]*\) unwind rows.*'
same .verified.patches '^  verified .*, \([0-9]*\) patches$'
same .size_before '^  size  *\([0-9]*\) -> .*'
same .size_after '^  size .* -> \([0-9]*\) bytes.*'
jq -e '.schema == 1 and .input == "prog" and .output == "prog.out" and .peak_rss_bytes > 1000000
	and .seconds.total > 0 and .code.blocks <= .verified.blocks
	and .verified.blocks <= .code.blocks + .code.via_slot and .code.via_slot == .verified.via_slot
	and .code.patches == .verified.patches' out.txt >/dev/null || fail "json: $(cat out.txt)"
[ "$(jq .size_after out.txt)" = "$(stat -c %s prog.out)" ] || fail "json: another size"
[ "$(jq .size_before out.txt)" = "$(stat -c %s prog)" ] || fail "json: another size before"
ends 0 "json, dry run" --all --report=json --dry-run prog
jq -e '.output == null' out.txt >/dev/null || fail "json, dry run: $(jq .output out.txt)"

ends 0 "--lab=list-patches" --all --lab=list-patches=patches --report=json prog -o prog.out
[ "$(wc -l <patches)" = "$(jq .code.patches out.txt)" ] || fail "--lab=list-patches: another number"
while read -r at size; do
	objdump -d --start-address="$at" --stop-address=$((at + size)) prog.out |
		grep -q "^ *${at#0x}:.*jmp" || fail "--lab=list-patches: no jump at $at"
done <patches
ends 1 "--lab=list-patches that cannot be written" --all --lab=list-patches=no/where prog -o prog.out
says err.txt '^morph-optimize: no/where: No such file' "--lab=list-patches"

# ---- with a profile in perf's text format: samples all over hot and pick
profile() { # FILE DB SAMPLES
	local off vaddr size at
	read -r off vaddr size < <(readelf -lW "$1" | awk '$1 == "LOAD" && / R E / { print $2, $3, $5 }')
	{
		echo "p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [$vaddr($size) @ $off 00:00 0 0]: r-xp $dir/$1"
		objdump -d --no-show-raw-insn "$1" |
			awk '/^[0-9a-f]+ </ { on = /<(hot|pick)>/ } on && /^ / && !/nop|xchg/ { sub(":", "", $1); print $1 }' >at.txt
		for ((i = 0; i < $3;)); do
			while read -r at && [ $i -lt "$3" ]; do
				echo "p 7/7 1.1: cycles:u: $at f ($dir/$1)"
				i=$((i + 1))
			done <at.txt
		done
	} >perf.text
	"$BUILD/morph-stats" --db "$2" import perf.text >/dev/null || fail "import: $1"
}
profile prog db 3000
ends 0 "a profile" --db db prog -o prog.fast
runs prog.fast "a profile"
says out.txt '^  samples    3000, 100.0 % ' "a profile"
says out.txt '^  predicted  taken branches' "a profile"
says out.txt '^  layout     blocks by ph, functions by ph' "a profile"
ends 0 "MORPH_DB" --version
MORPH_DB=db ends 0 "MORPH_DB" prog -o prog.env
cmp prog.fast prog.env || fail "MORPH_DB: another output"
ends 0 "a profile, json" --db db --report=json prog -o prog.fast
jq -e '.samples == 3000 and .samples_moved == 3000 and .predicted_taken_ratio > 0
	and .functions.moved >= 2 and .layout.block_order == "ph" and .layout.fetch_line == 64' out.txt >/dev/null || fail "a profile, json: $(cat out.txt)"
for o in --layout=blocks=original --layout=functions=original --lab=estimator=scaled \
	--exact-profile --lab=no-tails --lab=no-slots,no-inline --layout=huge-pages --lab=line=0 --lab=line=32 \
	--lab=blocks=exttsp,functions=original --lab=functions=cds --lab=blocks=ph,functions=ph,line=64 \
	--layout=functions=auto \
	--lab=estimator=poisson --since=1 --min-samples=3000; do
	ends 0 "$o" --db db "$o" prog -o prog.opt
	runs prog.opt "$o"
done
# Ways of branches in the store: all taken, or none.
objdump -d prog | sed -n 's/^ *\([0-9a-f]*\):.*\tj[a-ln-z][a-z]* .*/\1/p' >branches
for o in "0 900" "900 0"; do
	sed "s/\$/ $o/" branches >ways
	rm -f ways.db*
	cp db ways.db
	"$BUILD/morph-stats" --db ways.db import --format=ways --binary=prog ways >/dev/null 2>err.txt ||
		fail "import of ways: $(cat err.txt)"
	ends 0 "ways, $o" --db ways.db prog -o "prog.${o%% *}"
	runs "prog.${o%% *}" "ways, $o"
	says out.txt '^  foreseen   [0-9]*00 ways of branches' "ways, $o"
	ends 0 "exact counts and ways, $o" --db ways.db --exact-profile prog -o "exact.${o%% *}"
	grep -q foreseen out.txt && fail "exact counts: the report names ways"
done
cmp -s prog.0 prog.900 && fail "opposite ways make the same output"
cmp -s exact.0 exact.900 || fail "exact counts: ways change the output"
[ "$("$optimize" --db ways.db --report=json --dry-run prog 2>/dev/null | jq .ways)" -gt 900 ] || fail "ways in JSON"
[ "$("$optimize" --db db --report=json --dry-run prog 2>/dev/null | jq .ways)" = 0 ] || fail "no ways in JSON"
ends 3 "too little profile" --db db --min-samples=3001 prog -o none
says err.txt '^morph-optimize: prog: too little profile: 3000 samples, want 3001' "too little profile"
ends 3 "a profile of another file" --db db pie -o none
says err.txt '^morph-optimize: pie: no samples of this build (build-id [0-9a-f]*) in db' "another file"
ends 3 "no database" --db nowhere.db prog -o none
says err.txt '^morph-optimize: .*nowhere.db' "no database"
[ -e nowhere.db ] && fail "a database was made"
head -c 3000 /dev/urandom >bad.db
ends 1 "a damaged database" --db bad.db prog -o none
says err.txt '^morph-optimize: .*bad.db' "a damaged database"
ends 1 "a database that is a directory" --db tmp prog -o none
[ -e none ] && fail "no profile, and yet there is an output"

# ---- without an output name; the suggested next commands
ends 3 "no profile at all" --db nowhere.db prog
says err.txt '^morph-optimize: .*nowhere.db' "no profile at all"
says err.txt '^    morphd run --db=nowhere.db -- ./prog ARGS$' "no profile at all"
says err.txt '1000 more samples take 0.2 s' "no profile at all"
ends 3 "too little profile" --db db --min-samples=5000 prog
says err.txt '    2000 more samples take 0.5 s' "too little profile"
# A running program that cannot be started as a command; --in-place says the same.
says err.txt '^  or, as root, of a program that runs already, such as a server:$' "too little profile"
says err.txt '^    morphd run --db=db --rate=4000 --pid=PID$' "too little profile"
cp "$(command -v sleep)" server
./server 300 &
server=$!
until cmp -s "/proc/$server/exe" server; do
	sleep 0.1
done
ends 3 "no profile of a server" --db db --in-place server
says err.txt "^  or, as root, of process $server, which runs this file now:\$" "no profile of a server"
says err.txt "^    morphd run --db=db --rate=4000 --pid=$server\$" "no profile of a server"
kill $server
wait $server 2>/dev/null
ends 3 "no profile of a library" --db db lib.so
says err.txt '^    morphd run --db=db -- COMMAND ARGS$' "no profile of a library"
says err.txt 'a command that uses ./lib.so' "no profile of a library"
ends 3 "no profile, quietly" --db nowhere.db --report=none prog
[ "$(wc -l <err.txt)" = 1 ] || fail "no profile, quietly: $(cat err.txt)"
ls ./*.morph 2>/dev/null && fail "no profile, and yet there is an output"
ends 0 "no output named" --db db prog
runs prog.morph "no output named"
cmp prog.fast prog.morph || fail "no output named: another one than with -o"
says out.txt '^    morph-audit ./prog -- ARGS$' "no output named"
says out.txt '^    morph-optimize --db=db --in-place ./prog$' "no output named"
ends 0 "over the last output" --db db prog
ends 0 "another name" --db db prog -o 'pr og'
says out.txt "^    morph-audit ./prog ./'pr og' -- ARGS$" "another name"
ends 0 "a library" --all lib.so
says out.txt "^    morph-audit --library=./lib.so -- COMMAND ARGS$" "a library"
echo "mine" >pie.morph
ends 1 "a name that is taken" --all pie
says err.txt 'pie.morph: exists, and morph-optimize did not write it' "a name that is taken"
[ "$(cat pie.morph)" = mine ] || fail "a name that is taken: it was overwritten"
rm pie.morph

# The default B of morph-audit.
audit() { # STATUS WHAT ARGS
	command_ends "$1" "$2" timeout 600 "$BUILD/morph-audit" --pairs=1:2 --warmup=0 "${@:3}"
}
"$BUILD/morph-audit" --pairs=1:2 --warmup=0 ./prog -- 12345 >out.txt 2>err.txt
case $? in 0 | 5) ;; *) fail "morph-audit of one program: $(cat err.txt)" ;; esac
says out.txt '^  B .* ./prog.morph$' "morph-audit of one program"
audit 2 "morph-audit without an output" ./pie
says err.txt 'there is no ./pie.morph' "morph-audit without an output"
cp prog.morph pie.morph
audit 1 "morph-audit with another's output" ./pie
says err.txt 'pie.morph: was made of another build of ./pie' "morph-audit with another's output"
cp pie pie.morph
audit 1 "morph-audit with no output" ./pie
rm pie.morph prog.morph lib.so.morph

# ---- functions by name
left_out() { # WHAT FUNCTION...: exactly these are left alone for that reason
	local what=$1
	shift
	[ "$(jq -r --arg why "$what" '[.functions.left_alone[] | select(.why == $why).function] | sort | join(" ")' out.txt)" = "$*" ] ||
		fail "$what: $(jq -c .functions.left_alone out.txt)"
}
ends 0 "--skip" --all --json --skip=hot prog -o prog.skip
runs prog.skip "--skip"
left_out "left out by --skip" hot
ends 0 "--skip twice" --all --json --skip=hot,main --skip='p?ck' prog -o prog.skip
runs prog.skip "--skip twice"
left_out "left out by --skip" hot main pick
ends 0 "--skip by address" --all --json --skip="$(nm prog | awk '$3 == "never" { print "0x" $1 }')" prog -n
left_out "left out by --skip" never
printf '# a list\nhot\n\n  pick  \nno_such_function\n' >list
ends 0 "--skip of a file" --all --json --skip=@list prog -n
left_out "left out by --skip" hot pick
ends 0 "--only" --db db --json --only=hot prog -o prog.only
runs prog.only "--only"
[ "$(jq .functions.moved out.txt)" = 1 ] || fail "--only: $(jq -c .functions out.txt)"
left_out "not named by --only" pick
ends 0 "--only, text" --db db --only=hot prog -o prog.only
says out.txt '^ *1  not named by --only$' "--only, text"
ends 1 "--skip of nothing" --all --skip=no_such_function prog -o prog.skip
says err.txt "prog: there is no function 'no_such_function'" "--skip of nothing"
ends 2 "--skip of no list" --all --skip=@no-such-file prog -o prog.skip

# The counts of the reasons in a text report add up.
cp prog stripped && strip stripped
for f in prog stripped; do
	ends 0 "reasons" --all "$f" -n
	awk '/^  functions / { want = $(NF - 2); on = 1; next } on && /^ +[0-9]+  / && $0 !~ /samples/ { got += $1; next }
		{ on = 0 } END { exit want != got }' out.txt || fail "$f: reasons do not add up: $(cat out.txt)"
done

# ---- files that cannot be inputs
refuses 1 'No such file' missing --all
mkdir adir
refuses 1 '[Dd]irectory\|regular' adir --all
: >empty
refuses 1 '' empty --all
echo '#!/bin/sh' >script
refuses 1 'not an ELF' script --all
head -c 64 prog >head
refuses 1 '' head --all
for n in 100 1000 5000 $(($(stat -c %s prog) - 1)); do
	head -c "$n" prog >cut
	refuses 1 '' cut --all
done
printf 'int main(void) { return 0; }\n' >small.c
if gcc -m32 -nostdlib -r -o x32 small.c 2>/dev/null; then
	refuses 1 '' x32 --all
else
	cp prog x32
	printf '\1' | dd of=x32 bs=1 seek=4 conv=notrunc status=none
	refuses 1 '' x32 --all
fi
gcc -c -o object.o small.c
ends 2 "an object without its program" --all object.o -o none
says err.txt 'needs --program=PROGRAM' "an object without its program"
cp prog arm
printf '\267' | dd of=arm bs=1 seek=18 conv=notrunc status=none
refuses 1 '' arm --all
refuses 4 'already optimised' prog.fast --all
objcopy --add-section .gopclntab=small.c prog golike
refuses 4 'Go' golike --all
printf 'int x; int *p = &x; int main(void) { return *p; }\n' >text.c
if gcc -fno-pie -c -o text.o text.c 2>/dev/null &&
	gcc -pie -Wl,--emit-relocs,-z,notext -o textrel text.o 2>/dev/null &&
	readelf -d textrel | grep -q TEXTREL; then
	refuses 4 'text relocations' textrel --all
fi
refuses 1 'No such file' "a name with spaces" --all

# ---- impossible outputs
same_file() { # NAME
	local sum
	sum=$(cksum <prog)
	ends 1 "-o $1" --all prog -o "$1"
	says err.txt "^morph-optimize: $1: is the input itself" "-o $1"
	[ "$sum" = "$(cksum <prog)" ] || fail "-o $1 changed the input"
}
ln -s prog symbolic
ln prog hard
same_file prog
same_file ./prog
same_file symbolic
same_file hard
[ -L symbolic ] || fail "the symbolic link is gone"
ends 1 "-o in no directory" --all prog -o no/where
says err.txt '^morph-optimize: no/where: No such file' "-o in no directory"
ends 1 "-o a directory" --all prog -o adir
says err.txt '^morph-optimize: adir: ' "-o a directory"
[ -d adir ] || fail "the directory is gone"
ends 1 "-o below a file" --all prog -o prog.c/x
ends 1 "-o with too long a name" --all prog -o "$(printf 'x%.0s' {1..300})"
for r in text json; do
	got=0
	"$optimize" --all --report=$r prog -o prog.out >/dev/full 2>err.txt || got=$?
	[ $got = 1 ] || fail "--report=$r on a full disk: status $got"
	says err.txt '^morph-optimize: standard output: No space' "--report=$r on a full disk"
done

# A private file system: read-only, then full.
cat >mounted.sh <<'END'
set -u
mkdir -p small && mount -t tmpfs -o size=16k none small 2>/dev/null || exit 77
got=0
"$1" --all prog -o small/out >out.txt 2>err.txt || got=$?
[ $got = 1 ] || echo "a full disk: status $got"
grep -q '^morph-optimize: small/out: No space left' err.txt || { echo "a full disk says:"; cat err.txt; }
[ -z "$(ls -A small)" ] || echo "a full disk: left behind: $(ls -A small)"
got=0
TMPDIR=$PWD/small "$1" --all --dry-run prog >out.txt 2>err.txt || got=$?
[ $got = 1 ] || echo "a full disk, dry run: status $got"
[ -z "$(ls -A small)" ] || echo "a full disk, dry run: left behind: $(ls -A small)"
mount -o remount,ro small || exit 0
got=0
"$1" --all prog -o small/out >out.txt 2>err.txt || got=$?
[ $got = 1 ] || echo "a read-only disk: status $got"
grep -q '^morph-optimize: small/out: Read-only' err.txt || { echo "a read-only disk says:"; cat err.txt; }
END
left_out=
if unshare -m true 2>/dev/null; then
	said=$(unshare -m bash mounted.sh "$optimize")
	case $? in
	77) left_out=" a full disk" ;;
	*) [ -z "$said" ] || fail "$said" ;;
	esac
else
	left_out=" a full disk"
fi
if [ "$(id -u)" != 0 ]; then
	mkdir closed
	chmod a-w closed
	ends 1 "a directory that may not be written" --all prog -o closed/out
	says err.txt '^morph-optimize: closed/out: Permission' "a closed directory"
fi

# ---- verify an existing output, and one that has been damaged
ends 0 "an output" --all prog -o proved
ends 0 "the output proved again" verify --explain prog proved
says out.txt '^  assumed:' "--explain"
# Assumptions about counting, numbering or polling are printed only for such files.
for how in --lab=kind=none --kind=edges --kind=pep --kind=pep,poll; do
	ends 0 "--explain, $how" instrument --all $how --explain prog -o explained
	case ${how##*=} in
	none) want="" ;;
	edges) want="flags " ;;
	pep) want="registers " ;;
	pep,poll) want="flags registers vector " ;;
	esac
	have=
	grep -q '^    calls, returns and indirect jumps pass no arithmetic flags$' out.txt && have="flags "
	grep -q '^    calls and returns that leave the file .* the ABI.s rules for registers' out.txt &&
		have="${have}registers "
	grep -q '^    callers in other files do not rely on a vector register' out.txt && have="${have}vector "
	[ "$have" = "$want" ] || fail "--explain, $how: says '$have', not '$want'"
done
at=$(readelf -SW proved | sed -n 's/.* \.morph\.text *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
printf '\x0f' | dd of=proved bs=1 seek=$((16#$at)) conv=notrunc 2>/dev/null
ends 4 "a damaged output" verify prog proved
says err.txt 'verify: at 0x' "a damaged output"
ends 4 "no output at all" verify prog prog
ends 2 "two things at once" verify prog --in-place proved

# ---- commands, each with its own options
for command in train refine instrument verify adopt restore; do
	ends 0 "$command --help" $command --help
	says out.txt "^Usage: morph-optimize $command " "$command --help"
	grep -q "^\.Ss $command$" "$root/Documentation/morph-optimize.1" ||
		fail "the manual page has no section on $command"
	says out.txt -- '--report' "$command --help"
	ends 2 "$command of nothing" $command
	says err.txt "^morph-optimize $command: " "$command of nothing"
	ends 2 "$command, an unknown option" $command --fast prog
	cp prog $command
	ends 0 "a file with the name of $command" --all ./$command -o named
	ends 0 "a file with the name of $command, behind --" --all -o named -- $command
	rm -f $command
done
ends 0 "restore --help" restore --help
grep -qE '^ +--(db|in-place|layout)' out.txt && fail "restore --help: lists options of others"
ends 0 "--help" --help
grep -qE '^ +--(audit-|counts)' out.txt && fail "--help: lists options of commands"
ends 2 "a command that does not come first" --json verify prog proved
says err.txt "a command comes first: morph-optimize verify" "a command that does not come first"
ends 0 "an output" --all prog -o old
ends 2 "train without a file and an output" train -- ./prog
says err.txt "name the FILE before the --" "train without a file and an output"
cp prog prog.morph
mkdir inpath && printf '#!/bin/sh -e\n' >inpath/found && chmod +x inpath/found
ends 1 "train: a script" train -o x -- inpath/found
says err.txt "is a script for /bin/sh; to make that faster, give it as FILE" "train: a script"
ends 1 "train: a name that PATH lacks" train -o x found -- ./prog
says err.txt "found: No such file" "train: a name that PATH lacks"
PATH=$PWD/inpath:$PATH ends 1 "train: a name in PATH" train -o x found -- ./prog
says err.txt "/inpath/found: is a script" "train: a name in PATH"
ends 1 "train: FILE.morph is no output" train ./prog -- ./prog
says err.txt "prog.morph" "train: FILE.morph is no output"
rm prog.morph
ends 2 "instrument, what?" instrument --kind=branches prog -o x
ends 2 "instrument without a place for counts" instrument --all prog
ends 2 "verify of one file" verify prog
ends 2 "verify of three files" verify prog old prog
# ---- what stages computed
ends 0 "--print=cfg" --all -n --print=cfg prog
says out.txt '^function pick at 0x[0-9a-f]*: [0-9]* blocks, [0-9]* bytes$' "--print=cfg"
says out.txt '^  0x[0-9a-f]* .* branch -> taken 0x[0-9a-f]*, fall 0x[0-9a-f]*' "--print=cfg"
grep -q 'build-id' out.txt && fail "--print: a report as well"
[ "$(grep -c ^function out.txt)" -gt 3 ] || fail "--print=cfg: few functions"
ends 0 "--print=cfg:hot" --all -n --print=cfg:hot prog
[ "$(grep ^function out.txt)" = "$(grep '^function hot at' out.txt)" ] || fail "--print=cfg:hot: $(cat out.txt)"
vaddr=$(nm prog | awk '$3 == "hot" { print "0x" $1 }')
cp out.txt by-name
for by in 'h?t' "$vaddr" hot,hot; do
	ends 0 "--print=cfg:$by" --all -n --print="cfg:$by" prog
	cmp by-name out.txt || fail "--print=cfg:$by: $(cat out.txt)"
done
ends 1 "--print of no function" --all -n --print=cfg:nowhere prog
says err.txt "there is no function 'nowhere'" "--print of no function"
ends 2 "--print=counts without a profile" --all -n --print=counts prog
ends 2 "--print with --json" --all -n --print=plan --json prog
ends 2 "--print-format alone" --all -n --print-format=dot prog
ends 0 "--print, all four" --db db --print=cfg:hot --print=counts:hot --print=plan:hot --print=place:hot prog -o printed
cmp prog.fast printed || fail "--print: another output"
for text in ', inferred$' ' [0-9.]* times, *[0-9]* samples, branch -> ' '  hot  *0x.* runs, [0-9.]* times' \
	' -> 0x[0-9a-f]* .* bytes, hot, short '; do
	says out.txt "$text" "--print, all four"
done
# Graphs: as many nodes as blocks, and what a small reader of the language makes of them.
cat >dot.py <<'P'
import re, sys
text = sys.stdin.read()
string = r'"(?:[^"\\\n]|\\.)*"'
attributes = rf'\[[a-z]+=(?:{string}|[a-z]+)(?:, [a-z]+=(?:{string}|[a-z]+))*\]'
statement = rf'\t(?:node|b\d+|b\d+ -> b\d+) {attributes};\n'
graph = rf'digraph {string} \{{\n(?:{statement})*\}}\n'
if not re.fullmatch(rf'(?:{graph})+', text):
    sys.exit(f"not in the language: {text[:400]}")
for one in re.findall(graph, text):
    nodes = set(re.findall(r'^\t(b\d+) \[', one, re.M))
    ends = set(re.findall(r'^\t(b\d+) -> (b\d+)', one, re.M))
    if not nodes or any(x not in nodes for pair in ends for x in pair):
        sys.exit(f"an edge without its nodes: {one[:400]}")
print(len(re.findall(graph, text)))
P
objcopy --redefine-sym never=$'n\033"\\\nx' prog odd || exit 1
for what in cfg plan place; do
	for p in prog odd; do
		ends 0 "--print=$what, dot, $p" --all -n --print=$what --print-format=dot $p
		[ "$(python3 dot.py <out.txt)" -ge 1 ] || fail "--print=$what, dot, $p: no graph"
		! LC_ALL=C grep -q '[^[:print:][:space:]]' out.txt || fail "--print=$what, dot, $p: unescaped"
		! command -v dot >/dev/null || dot -Tsvg out.txt >/dev/null || fail "dot does not take --print=$what of $p"
	done
done
ends 0 "an odd name" --all -n --print=cfg odd
grep -qF 'function n\x1b"\\x0ax at' out.txt || fail "an odd name: $(grep ^function out.txt)"
ends 0 "--print=counts, dot" --db db -n --print=counts:hot --print-format=dot prog
[ "$(python3 dot.py <out.txt)" = 1 ] || fail "--print=counts, dot: $(cat out.txt)"
ends 0 "--print=plan, dot" --db db -n --print=plan:hot --print-format=dot prog
says out.txt 'label="[0-9.]*\\n\(fall\|taken\|jump\) -> \(fall\|taken\|jump\)"' "--print=plan, dot"
command_ends 1 "--print to a full disk" sh -c '"$0" --all -n --print=cfg prog >/dev/full' "$optimize"

# ---- the reported memory is morph-optimize's own, not that of a larger program that executed it
python3 -c 'import os, sys
x = b"x" * 400000000
os.execv(sys.argv[1], sys.argv[1:])' "$optimize" --all --dry-run --json prog >out.txt || fail "after a large program: status $?"
rss=$(sed -n 's/.*"peak_rss_bytes": \([0-9]*\).*/\1/p' out.txt)
[ "${rss:-0}" -gt 1000000 ] && [ "$rss" -lt 200000000 ] || fail "peak_rss_bytes: '$rss'"

# ---- interrupted at any time: the whole output or none, and no other file
for ((i = 0; i < 600; i++)); do
	echo "int f$i(int x, int y) { switch (x) { case 1: return y * $i; case 2: return y + 3;"
	echo "case 3: return y / 3; case 4: return y - x; case 5: return ~y; default: return x; } }"
done >many.c
gcc -O1 -fPIC -shared -Wl,--emit-relocs -o many.so many.c || exit 1
ends 0 "many functions" --all many.so -o many.out
# timeout sends the signal. A child of bash that is hit before it executes another program would run
# the script's own clean-up.
for sig in INT TERM HUP; do
	for delay in 0.001 0.005 0.01 0.02 0.03 0.04 0.06 0.08 0.12; do
		rm -f stopped
		timeout -s $sig $delay "$optimize" --all many.so -o stopped >/dev/null 2>&1
		nothing_left "SIG$sig after $delay s"
		[ ! -e stopped ] || cmp -s stopped many.out || fail "SIG$sig after $delay s: a torn output"
	done
done

# A file that becomes shorter while it is read: one message, no half-written output, no signal.
mkdir shorter
cp /bin/bash shorter/whole
(while :; do
	cp shorter/whole shorter/file
	head -c 30000 shorter/whole >shorter/file
done) 2>/dev/null &
changer=$!
for _ in {1..25}; do
	"$BUILD/morph-optimize" --all --report=none -o shorter/out shorter/file >out.txt 2>err.txt
	case $? in
	0 | 4) ;;
	1) one_line "a file that becomes shorter" ;;
	*) fail "a file that becomes shorter: $(cat err.txt)" ;;
	esac
done
kill $changer
wait $changer 2>/dev/null
[ -z "$(ls -d shorter/.morph.* 2>/dev/null)" ] || fail "a file that becomes shorter: left behind: $(ls -A shorter)"

[ -z "$left_out" ] || echo "left out:$left_out"
[ $nr_failed = 0 ]
