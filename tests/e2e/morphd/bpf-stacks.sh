#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it runs alone, on a program for each hard case
# alone: it samples
# The stacks that the BPF program walks are those of the reference, for the same registers and the same
# memory: of stripped programs of the distribution, and of a program for each hard case. They are exactly
# what a stripped program without frame pointers notes itself.
# shellcheck disable=SC2016 # the $ of perl, bash and jq
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need jq "${cc%% *}" g++ strip bash perl openssl
scratch bpf-stacks
WALKS=$BUILD/tools/bpf-walks
[ -x "$WALKS" ] || { echo "skip: $WALKS is not built"; exit 77; }
"$WALKS" 100 probe true >out.txt 2>err.txt
if [ $? = 77 ]; then
	echo "no stacks by BPF on this machine: $(head -n 1 err.txt)"
	exit 77
fi

# is FILTER WHAT: true of the last run
is() { [ "$(jq "$1" out.txt)" = true ] || fail "$2: not $1: $(cat out.txt)"; }

# compared WHAT COMMAND...: no frame is wrong, and walks end where the reference's end. Until morphd has
# the rows of the program's files, walks end there.
compared() {
	local what=$1
	shift
	command_ends 0 "$what" "$WALKS" 1000 "$what.rec" "$@"
	is '.wrong == 0' "$what: wrong frames: $(head -n 40 err.txt)"
	is '.same + .further > 20' "$what: few stacks"
	is '.shorter as $s | ([$s[]] | add) - $s["no-rows"] - $s.depth == 0' "$what: walks ended early"
	echo "$what: $(jq -c '{samples, frames, complete, same, further}' out.txt)"
}

# ---- stripped programs of the distribution
echo 'f() { ((n += $1)); }; for ((i = 0; i < 60000; i++)); do f $i; done
g() { if (($1)); then g $(($1 - 1)); else for ((j = 0; j < 60000; j++)); do ((m += j)); done; fi; }; g 30' >work.bash
echo 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } $n = f(22) for 1 .. 15' >work.pl
compared bash bash work.bash
is '.further > 10' "bash: no stack is deeper than the copy"
compared perl perl work.pl
is '.complete > 0.5 * .samples' "perl: few complete stacks"
compared openssl openssl enc -aes-256-cbc -pbkdf2 -iter 1000000 -nosalt -k word -in /etc/passwd -out /dev/null
is '.complete > 0.5 * .samples' "openssl: few complete stacks"

# ---- a program for each hard case
data=$root/tests/data
$cc -O2 -fPIC -shared -nostartfiles -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer \
	-Wl,--no-ld-generated-unwind-info -Wl,-soname,libwalks_bare.so -o libwalks_bare.so "$data/walks_bare.c" &&
	$cc -O2 -o walks "$data/walks.c" libwalks_bare.so &&
	$cc -O2 -fno-optimize-sibling-calls -Wl,-z,lazy -o prog "$data/contexts.c" -pthread &&
	${CXX:-g++} -O2 -Wl,-z,lazy -o throws "$data/contexts.cc" &&
	strip walks prog throws libwalks_bare.so || exit 1
export LD_LIBRARY_PATH=$PWD
for run in 'rbp 50000' 'callbacks 10000' 'depth 2000' 'jit_framed 100000' 'jit_unset 50000' 'jit_leaf 50000' \
	'jit_frameless 20000' 'jit_misused 30000' 'no_rows 30000' 'remapped 30'; do
	# shellcheck disable=SC2086 # a case and its number
	compared ${run% *} ./walks $run
done
for run in 'recursion 50000 3' 'jumps 50000 15' 'signals 7000 1' 'contexts 14000 1' 'hands 50000 15'; do
	read -r name nr times <<<"$run"
	compared "$name" bash -c 'for ((i = 0; i < $3; i++)); do ./prog $(yes $1 | head -n $2); done' \
		bash "$name" "$nr" "$times"
done
compared throws bash -c 'for i in {1..40}; do ./throws; done'
unset LD_LIBRARY_PATH

# ---- what a program notes itself: a signal handler on its own stack, recursion deeper than a walk goes, rbp as
# a number, realigned frames, code made at run time
$cc -std=gnu17 -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -I"$root" -D_GNU_SOURCE -o walked \
	"$root/tests/guest/programs/walked.c" && strip walked || exit 1
command_ends 0 "noted" "$WALKS" --noted 400 noted.rec ./walked
is '.wrong == 0' "noted: wrong frames: $(head -n 40 err.txt)"
is '.noted | min > 20' "noted: few stacks"
echo "noted: $(jq -c '{samples, frames, complete, noted}' out.txt)"
finish
