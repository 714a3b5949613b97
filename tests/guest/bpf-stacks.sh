#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: the BPF programs in an emulator
# The BPF program that walks stacks, on this kernel: the verifier takes it, it finds its way in this kernel's
# structures, and its stacks are exactly what a program notes itself, and the reference's. Without the module.
# shellcheck disable=SC2016 # the $ of perl and jq
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || { echo "skip: jq is missing"; exit 77; }
walks=$BUILD/tools/bpf-walks
[ -x "$walks" ] || { echo "skip: $walks is not built"; exit 77; }
"$walks" 100 probe true >out.txt 2>err.txt
if [ $? = 77 ]; then
	[ -e /sys/kernel/btf/vmlinux ] || { echo "skip: $(head -n 1 err.txt)"; exit 77; }
	fail "no stacks: $(head -n 1 err.txt)"
	finish
fi

# is FILTER: true of the last run
is() { [ "$(jq "$1" out.txt)" = true ] || fail "not $1: $(cat out.txt err.txt)"; }

"$walks" --noted 400 noted.rec "$GUEST/walked" >out.txt 2>err.txt || fail "noted: exit $?: $(head -n 60 err.txt)"
is '.wrong == 0'
is '.noted | min > 10'
jq -c '{samples, frames, complete, noted}' out.txt
echo 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } f(shift)' >work.pl
# Walks stop until perl's rows are compiled, and until a mapping that was just made is known. A slow guest needs
# a longer work.
for n in 20 22 24; do
	"$walks" 400 perl.rec perl work.pl $n >out.txt 2>err.txt || fail "perl: exit $?: $(head -n 60 err.txt)"
	is '.wrong == 0'
	is '.shorter as $s | ([$s[]] | add) == $s["no-rows"] + $s.unmapped and 20 * $s.unmapped < .samples'
	[ "$(jq '.same > 20' out.txt)" = false ] || break
done
is '.same > 20'
jq -c '{samples, frames, complete, same}' out.txt
finish
