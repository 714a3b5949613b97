#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone, for each source and each way to select processes
# alone: it samples
# Registers of samples tell which way a program's branches go, with each source. morphd counts these ways by default: of
# a command, of processes that are selected, and as a service; but not in a recording or where other registers, or none,
# are asked for.
. "$(dirname "$0")/../lib.sh"
MORPHD=$BUILD/morphd
STATS=$BUILD/morph-stats
cd "$TMPDIR" || exit 1
"$MORPHD" run --source=perf --registers=branches --record probe -- true 2> err || {
	echo "no sampling of registers on this machine: $(head -n 1 err)"
	exit 77
}
${CC:-gcc} -o original "$root/tests/e2e/morphd/paths.S" || exit 1
# walk() has no unwind information: behind a label it would stay, since a program may copy such code.
objcopy --strip-symbol=blk_a original || exit 1
# Only the flags tell the way of its branches, since they depend on memory.
cat > flagged.S <<'S'
	.globl _start
_start:	lea count(%rip), %rdx
1:	decl (%rdx)
	.rept 90
	nop
	.endr
	jnz 1b
	mov $60, %eax
	xor %edi, %edi
	syscall
	.data
count:	.long 20000000
	.section .note.GNU-stack, "", @progbits
S
${CC:-gcc} -nostdlib -static -Wl,--build-id -o flagged flagged.S || exit 1
branch=$(objdump -d original | sed -n 's/^ *\([0-9a-f]*\):.*jne .*<blk_c>$/\1/p')
block=$(nm original | sed -n 's/^0*\([0-9a-f]*\) t walk$/\1/p; s/^0*\([0-9a-f]*\) T walk$/\1/p')
[ -n "$branch" ] && [ -n "$block" ] || fail "no branch to C"

# run SOURCE OPTION...: samples the program at 4,000 Hz; leaves live.db, live.out
run() {
	local source=$1
	shift
	rm -f live.db*
	"$MORPHD" run --source="$source" --no-kernel --rate 4000 --db live.db --json "$@" > live.out 2> err ||
		fail "$source: $(cat err)"
}

# checked SOURCE: whether all ways are stored and right
checked() {
	[ "$(jq .ways.failed live.out)" = 0 ] || fail "$1: $(jq -c .ways live.out)"
	[ "$(jq .ways.ways live.out)" -gt 300 ] || fail "$1: few ways: $(jq -c .ways live.out)"
	"$STATS" status --check --db live.db > /dev/null || fail "$1: status --check"
	[ "$("$STATS" status --db live.db --json | jq .nr_ways)" = "$(jq .ways.ways live.out)" ] ||
		fail "$1: the store has others"
	"$BUILD/morph-optimize" --db=live.db --print=counts original > counts 2> err || fail "$1: print: $(cat err)"
	# The first block ends in the branch.
	shares=$(sed -n "s/^  0x$block .* branch -> taken 0x[0-9a-f]* \([0-9.]*\), fall 0x[0-9a-f]* \([0-9.]*\)\$/\1 \2/p" counts)
	echo "$1: to C and B: $shares, $(jq -c .ways live.out)"
	echo "$shares" | awk '{exit !($1 > 2 * $2 && $1 < 5 * $2)}' || fail "$1: counts: $shares"
	"$BUILD/morph-optimize" --db=live.db --report=json -o moved original > report 2> err || fail "$1: optimize: $(cat err)"
	[ "$(jq .ways report)" -gt 300 ] || fail "$1: the report has no ways"
}

sources=perf
if "$MORPHD" run --source=bpf --registers=branches --db probe.db -- true 2> err; then
	sources="perf bpf"
else
	echo "skip: bpf: $(head -n 1 err)"
fi
for source in $sources; do
	# Repeat with more work on a machine that gives few samples.
	for n in 40 200 1000; do
		run "$source" --registers=branches -- ./original $n
		[ "$(jq .ways.ways live.out)" -lt 1000 ] || break
	done
	checked "$source"
	# The flags are among the registers.
	run "$source" --registers=branches -- ./flagged
	[ "$(jq '.ways.ways * 2 > .ways.samples and .ways.ways > 20' live.out)" = true ] ||
		fail "$source: no flags: $(jq -c .ways live.out)"
	# Without them: the same samples, and no ways.
	run "$source" --registers=no -- ./original 10
	[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, off: $(jq -c .ways live.out)"
	for registers in "" --registers=auto; do
		# shellcheck disable=SC2086
		run "$source" $registers -- ./original 10
		[ "$(jq .ways.ways live.out)" -gt 20 ] || fail "$source, default $registers: $(jq -c .ways live.out)"
	done
	run "$source" --record rec -- ./original 10
	[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, recording: $(jq -c .ways live.out)"
	run "$source" --registers=paths -- ./original 10
	[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, paths: $(jq -c .ways live.out)"
	# With stacks, only if asked for.
	if run "$source" --stacks --rate 999 -- ./original 2 && [ "$(jq '[.stacks[]] | add' live.out)" != 0 ]; then
		[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, stacks: $(jq -c .ways live.out)"
		run "$source" --stacks --rate 999 --registers=branches -- ./original 20
		[ "$(jq '.ways.ways > 20 and ([.stacks[]] | add) > 20' live.out)" = true ] ||
			fail "$source, stacks and ways: $(jq -c '[.ways, .stacks, .emitted]' live.out)"
		[ "$(jq '[.stacks[]] | add <= $all' --argjson all "$(jq .emitted live.out)" live.out)" = true ] ||
			fail "$source: more stacks than samples"
	fi
done
"$MORPHD" run --registers=all -- true 2> err
[ $? = 2 ] && grep -q "neither paths, branches, no nor auto" err || fail "a value that there is not: $(cat err)"

# A selected process, and the service; these sample the whole machine.
if ! "$MORPHD" run --db probe.db --user=0 -- true 2> err; then
	echo "skip: the whole machine: $(head -n 1 err)"
	exit $((nr_failed > 0))
fi
./original 100000 &
victim=$!
at_exit 'kill $victim 2> /dev/null'
# service DB OPTION...: a service for some seconds; leaves DB and live.out
service() {
	local db=$1 pid
	shift
	rm -f "$db"*
	"$MORPHD" --rate 997 --no-kernel --db "$db" --json "$@" > live.out 2> err &
	pid=$!
	sleep 4
	kill -TERM $pid
	wait $pid || fail "service: $(cat err)"
}
for source in $sources; do
	run "$source" --pid $victim -- sleep 2
	[ "$(jq .ways.ways live.out)" -gt 20 ] || fail "$source, --pid: $(jq -c .ways live.out)"
	[ "$("$STATS" query --db live.db --json | jq '[.rows[].module | select(endswith("/original") | not)] | length')" -le 3 ] ||
		fail "$source, --pid: other programs: $("$STATS" query --db live.db)"
	run "$source" --pid $victim --registers=no -- sleep 1
	[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, --pid without: $(jq -c .ways live.out)"
	service service.db --source="$source"
	[ "$(jq .ways.ways live.out)" -gt 20 ] || fail "$source, service: $(jq -c .ways live.out)"
	"$STATS" status --check --db service.db > /dev/null || fail "$source, service: status --check"
	[ "$(sqlite3 -readonly service.db "SELECT nr_ways > 20 FROM way_bucket JOIN module ON module.key = way_bucket.module
		WHERE path LIKE '%/original'")" = 1 ] || fail "$source, service: no ways of the program"
	# 64 samples a second of 997 are executed at most.
	[ "$(jq '.ways.samples * 14 < .attributed' live.out)" = true ] ||
		fail "$source, service: too many: $(jq -c '[.ways, .attributed]' live.out)"
	echo 'registers = no' > off.conf
	service service.db --source="$source" --config "$PWD/off.conf"
	[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, service, off: $(jq -c .ways live.out)"
	service service.db --source="$source" --record service.rec
	[ "$(jq .ways.samples live.out)" = 0 ] || fail "$source, service, recording: $(jq -c .ways live.out)"
done
[ $nr_failed = 0 ] && echo ok
exit $((nr_failed > 0))
