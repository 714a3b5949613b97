#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs whose runtimes look at their own code: at tables of return addresses (OCaml), and at an area of
# functions that is copied as a whole (V8). Such functions stay, the rest of the program moves, and verify
# refuses a version in which they moved. Then an interpreter with labels that are only a jump (Mono's).
. "$(dirname "$0")/../lib.sh"
data=$root/tests/data/own_code
dir=$(mktemp -d "${TMPDIR:-/tmp}/runtimes.XXXXXX") || exit 1
at_exit 'rm -rf "$dir"'
nr_failed=0
nr_run=0
cd "$dir" || exit 1

# build NAME SOURCE FLAGS...: compile
build() {
	local name=$1 source=$2
	shift 2
	gcc -O2 -fcf-protection=none "$@" -o "$name" "$data/$source" || exit 1
}

# same WHAT NAME REASON: every way of optimising ./NAME leaves its output, and lists REASON
same() {
	local way

	"./$2" >want
	echo "status $?" >>want
	for way in --all --lab=stress-layout=1 --lab=stress-layout=2 --lab=stress-layout=3 "--all --lab=stress-inline=1"; do
		nr_run=$((nr_run + 1))
		rm -f out
		# shellcheck disable=SC2086
		"$BUILD/morph-optimize" $way -o out "$2" >report 2>&1 ||
			{ fail "$1 $way: $(cat report)"; continue; }
		grep -q "$3" report || fail "$1 $way: the report lacks '$3'"
		grep -q ' 0 moved' report && fail "$1 $way: nothing moved"
		./out >got 2>&1
		echo "status $?" >>got
		cmp -s want got || fail "$1 $way: $(tail -2 got)"
	done
}

while read -r name flags; do
	# shellcheck disable=SC2086
	build "frames-$name" frames.c $flags
	same "frames $name" "frames-$name" 'data may hold a return address in it'
	strip -o "frames-$name-stripped" "frames-$name"
	case $flags in
	*emit-relocs*) ;;
	*) same "frames $name, stripped" "frames-$name-stripped" 'data may hold a return address in it' ;;
	esac
	# shellcheck disable=SC2086
	build "copied-$name" copied.c $flags
	same "copied $name" "copied-$name" 'no unwind information'
	# shellcheck disable=SC2086
	build "labels-$name" labels.S $flags
	same "labels $name" "labels-$name" 'functions'
done <<EOF
pie -fpie -pie
nopie -fno-pie -no-pie
static -static
pie-relocs -fpie -pie -Wl,--emit-relocs
nopie-relocs -fno-pie -no-pie -Wl,--emit-relocs
EOF

# refused NAME ORIGINAL MOVED ERROR: MOVED is a version of a program that has the bytes of ORIGINAL, but not its
# table or label. verify must refuse what becomes of it with ORIGINAL's table or symbols.
refused() {
	nr_run=$((nr_run + 1))
	"$BUILD/morph-optimize" verify "$2" "$3" >report 2>&1 && fail "$1: verify accepted"
	grep -q "$4" report || fail "$1: $(cat report)"
}

# The table's words are those that differ between the two builds.
build frames frames.c -fno-pie -no-pie -s -Wl,--build-id=none
build zeros frames.c -DNO_TABLE -fno-pie -no-pie -s -Wl,--build-id=none
"$BUILD/morph-optimize" --all --report=none -o moved zeros || fail "zeros: not optimised"
cp moved moved-alone
cmp -l zeros frames | while read -r at _ byte; do
	# shellcheck disable=SC2059
	printf "\\$byte" | dd of=moved bs=1 seek=$((at - 1)) conv=notrunc status=none
done
cmp -s moved moved-alone && fail "the forged version has no table"
refused "a moved function with return addresses in data" frames moved 'data may hold a return address'
# Without the label nothing tells that the area is copied.
build copied copied.c -fno-pie -no-pie -Wl,--build-id=none
objcopy --strip-symbol=area copied unnamed || exit 1
"$BUILD/morph-optimize" --all --report=none -o moved unnamed || fail "unnamed: not optimised"
refused "moved functions in an area that is copied" copied moved 'may copy as a whole'
finish
