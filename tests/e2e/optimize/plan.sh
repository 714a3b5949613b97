#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: plans of several kinds of files, and many damaged ones
# --save-plan and --plan: a plan gives the output of the run that saved it, byte for byte, for files of several kinds,
# with a profile and without; a plan that is damaged, hostile, or of another file is refused with one message.
. "$(dirname "$0")/../lib.sh"
scratch plan
need gcc g++ cmp strip
optimize=$BUILD/morph-optimize
live= # the option that the plan is used with, too

# round WHAT FILE [OPTIONS]: the same output and plan, with and without what the plan came from
round() {
	command_ends 0 "$1: save" "$optimize" --report=none --save-plan=a.plan -o a.out "${@:3}" "$2"
	command_ends 0 "$1: use" "$optimize" --report=none --plan=a.plan --save-plan=b.plan -o b.out $live "$2"
	cmp a.out b.out || fail "$1: the plan gives another output"
	cmp a.plan b.plan || fail "$1: the plan gives another plan"
}

# profile FILE ARGUMENT...: exact counts of a run, in FILE.db
profile() {
	rm -f counts.*
	"$optimize" instrument --kind=edges,plain --counts="$dir/counts.%p" --report=none -o counting "$1" &&
		{ ./counting "${@:2}" >/dev/null 2>&1 || true; } &&
		"$BUILD/morph-stats" -d "$(basename "$1").db" import --binary=counting counts.* >/dev/null 2>err.txt ||
		fail "$1: no profile: $(cat err.txt)"
}

gcc -O2 "$root/tests/data/leaf_calls.c" -o calls && gcc -O2 -fno-pie -no-pie -Wl,--emit-relocs "$root/tests/data/control.c" -o control &&
	g++ -O2 "$root/tests/data/exceptions.cc" -o exceptions && gcc -O2 -static "$root/tests/data/leaf.c" -o leaf || exit 1
strip -o stripped control
cp "$(command -v perl)" perl
cp "$(gcc -print-prog-name=cc1)" cc1
for file in calls control exceptions leaf stripped perl; do
	round "$file" $file --all
	for seed in 1 2; do
		round "$file, seed $seed" $file --lab=stress-layout=$seed
	done
	# shellcheck disable=SC2016
	profile $file $([ $file != perl ] || echo -e 'print map {$_%7}sort{$a<=>$b}1..9999')
	for layout in line=64 blocks=exttsp,functions=cds blocks=original,functions=original,line=32 no-slots,no-inline,no-tails huge-pages; do
		round "$file, $layout" $file --db=$file.db --min-samples=1 --lab=$layout
	done
	[ $file = stripped ] || round "$file, adjusted" $file --db=$file.db --min-samples=1 --adjust=main:start=16
done
echo 'int f(int x) {int i, s = 0; for (i = 0; i < x; i++) s += i % 3 ? i : x; return s;}' >a.c
profile cc1 -O2 -quiet a.c -o a.s
round "cc1 by its profile" cc1 --db=cc1.db
echo "bytes of cc1's plan: $(stat -c %s a.plan)"
[ "$(stat -c %s a.plan)" -lt 1000000 ] || fail "the plan is large"
"$optimize" --plan=a.plan -o b.out --report=json cc1 >report.json || fail "no report"
command_ends 0 "a plan and --print" "$optimize" --plan=a.plan --dry-run --print=plan:main cc1

# refused WHAT PLAN [FILE]: one line, status 1, and nothing is written
refused() {
	rm -f c.out
	command_ends 1 "$1" "$optimize" --plan="$2" -o c.out "${3:-calls}"
	one_line "$1"
	[ ! -e c.out ] || fail "$1: there is an output"
}

# First instructions are blocks of their own in plans for running processes alone. Behind endbr64 they are not.
live=--live-at=0x4000000
round "for running processes" calls --all $live
refused "a plan for running processes" a.plan
says err.txt "saved with --live-at has other blocks" "a plan for running processes"
command_ends 0 "for files" "$optimize" --report=none --all --save-plan=a.plan -o a.out calls
command_ends 1 "a plan for files" "$optimize" --plan=a.plan $live -o c.out calls
says err.txt "saved with --live-at has other blocks" "a plan for files"
echo 'int f(int x) {int i, s = 0; for (i = 0; i < x; i++) s += i % 3 ? i : x; return s;} int main(int c, char **v) {return f(c) & 1;}' >marked.c
gcc -O2 -fcf-protection=branch marked.c -o marked || exit 1
command_ends 0 "huge pages" "$optimize" --report=none --all --lab=huge-pages --save-plan=a.plan -o a.out marked
command_ends 1 "a plan with huge pages" "$optimize" --plan=a.plan $live -o c.out marked
says err.txt "is a plan with huge pages" "a plan with huge pages"
live=
round calls calls --lab=stress-layout=3
refused "a plan of another file" a.plan control
says err.txt 'a.plan: is the plan of another file$'
gcc -O1 -Wl,--build-id=0x1122334455 "$root/tests/data/leaf_calls.c" -o one && gcc -O2 -Wl,--build-id=0x1122334455 "$root/tests/data/leaf_calls.c" -o two
round "a build-id that is another file's, too" one --all
refused "a plan of a file with this build-id and other code" a.plan two
round calls calls --lab=stress-layout=3
head -c -1 a.plan >cut
refused "a plan that is cut off" cut
says err.txt 'cut: the plan is cut off'
{ cat a.plan; echo; } >longer
refused "a plan with more behind it" longer
refused "an empty plan" /dev/null
: >none
refused "an empty file" none
says err.txt 'none: is no plan$'
refused "no plan" calls
refused "no file" missing
mkfifo fifo
refused "a FIFO" fifo
truncate -s 100M giant
refused "a giant file" giant
says err.txt 'giant: is larger than any plan$'
{ head -c 40 a.plan; head -c 1000000 /dev/urandom; } >noise
refused "noise behind the identity" noise
printf '\x02' | dd of=cut bs=1 seek=8 conv=notrunc status=none
refused "another format" cut
says err.txt 'of another version of Morph, in format 2$'

for options in --all --db=calls.db --skip=main --only=main --lab=no-slots --lab=stress-inline=1 --markers=remove --since=3d; do
	command_ends 2 "--plan with $options" "$optimize" --plan=a.plan "$options" -o c.out calls
done
command_ends 2 "--save-plan with --lab=stress-inline" "$optimize" --all --lab=stress-inline=1 --save-plan=c.plan -o c.out calls
command_ends 1 "the plan is the output" "$optimize" --all --save-plan=c.out -o c.out calls
command_ends 1 "the plan is the input" "$optimize" --all --save-plan=calls -o c.out calls
command_ends 1 "waiting code" "$optimize" --all --adjust=main:wait=3 --save-plan=c.plan -o c.out calls
finish
