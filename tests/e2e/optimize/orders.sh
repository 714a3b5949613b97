#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: every order of blocks and functions, each run step by step
# With every order of blocks and functions, with and without padding and huge pages, the program
# behaves the same, and execution never starts inside a patch.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root" || exit 1
nr_failed=0 nr_run=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

if ! scripts/works/programs --inputs gzip lua >"$TMPDIR/build.log" 2>&1; then
	tail -n 3 "$TMPDIR/build.log"
	echo "skip: the test programs could not be built (no network?)"
	exit 77
fi
export INPUTS=${INPUTS:-$BUILD/inputs} LC_ALL=C
cd "$TMPDIR" || exit 1
mkdir -p a b

for name in gzip lua; do
	cp "$BUILD/programs/$name-pie" "a/$name"
	rm -f db db-*
	command=$("$root/scripts/works/workload" $name exact "$PWD/a/$name")
	# Repeat until there are enough samples.
	for _ in {1..20}; do
		if ! "$BUILD/morphd" run --db=db -- sh -c "$command" >run.log 2>&1; then
			echo "skip: nothing can be sampled here: $(tail -n 1 run.log)"
			exit 77
		fi
		nr=$("$BUILD/morph-stats" --db=db query --binary="a/$name" --by=module --json 2>/dev/null |
			sed -n 's/.*"samples": *\([0-9]*\).*/\1/p')
		[ "${nr:-0}" -lt 500 ] || break
	done
	sh -c "$("$root/scripts/works/workload" $name short "$PWD/a/$name")" >want 2>/dev/null
	for options in blocks=ph,functions=ph blocks=ph,functions=cds \
		blocks=exttsp,functions=cds blocks=exttsp,functions=original \
		blocks=original,functions=cds,huge-pages \
		blocks=exttsp,functions=cds,line=32,no-tails \
		blocks=original,functions=original,line=0; do
		if ! "$BUILD/morph-optimize" --db=db --min-samples=100 --lab=$options --lab=list-patches=patches \
			"a/$name" -o "b/$name" >opt.log 2>&1; then
			fail "$name $options: $(tail -n 1 opt.log)"
			continue
		fi
		grep -q "blocks by $(sed 's/.*blocks=\([a-z0-9]*\).*/\1/' <<<"$options"), functions by $(
			sed 's/.*functions=\([a-z0-9]*\).*/\1/' <<<"$options")" opt.log ||
			fail "$name $options: the report names other orders"
		sh -c "$("$root/scripts/works/workload" $name short "$PWD/b/$name")" >got 2>/dev/null ||
			fail "$name $options: fails"
		cmp -s want got || fail "$name $options: output differs"
		nr_run=$((nr_run + 1))
	done
	command -v qemu-x86_64 >/dev/null || continue
	# Once under the emulator, which sees every execution inside a patch.
	"$BUILD/morph-optimize" --db=db --min-samples=100 --lab=blocks=exttsp,functions=cds \
		--lab=list-patches=patches "a/$name" -o "b/$name" >opt.log 2>&1
	read -ra words <<<"$("$root/scripts/works/workload" $name short "$PWD/b/$name")"
	"$root/scripts/bench/branches" --patches patches "${words[0]}" -- "${words[@]:1}" >branches.log 2>&1 ||
		fail "$name under the emulator: $(tail -n 1 branches.log)"
done
echo "$nr_run outputs ran"
[ $nr_failed = 0 ]
