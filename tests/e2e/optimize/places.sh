#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Data that knows places inside functions, in every encoding, and programs that read the code of their functions: the
# functions stay, the outputs behave as the originals. The long form tries more programs.
. "$(dirname "$0")/../lib.sh"
scratch places
need gcc clang

limit=30
[ "${MORPH_LONG:-0}" = 0 ] || limit=600
"$root/scripts/check/places" --limit=$limit >out.txt || fail "places: exit $?"
cat out.txt
says out.txt "^$limit programs, [0-9]* outputs, 0 failures" "all programs"

# Of each kind, the function that must stay is left alone for the right reason, while others move.
look() {
	local words=$1 name=$2 why=$3

	"$root/scripts/check/places" --source $words >a.c || fail "$words: no source"
	# shellcheck disable=SC2046
	$(sed -n 's,^// ,,p' a.c | tail -n 1) -Wl,--build-id -o a a.c || fail "$words: does not compile"
	"$BUILD/morph-optimize" --all --report=json -o b a >report.json || fail "$words: no output"
	jq -e --arg name "$name" --arg why "$why" \
		'[.functions.left_alone[] | select(.function == $name and (.why | contains($why)))] | length == 1' \
		report.json >/dev/null || fail "$words: $name is not left alone because of: $why"
}
need jq
look "copy-memcpy-memmove-end-plain-small-pie-gcc-O2" template "reads its code"
look "copy-call-loop-end-plain-small-fixed-gcc-O0" template "reads its code"
look "copy-memcpy-memmove-size-sum-large-pie-relocs-gcc-O2" template "reads its code"
look "copy-memcpy-memmove-size-plain-large-static-pie-gcc-O2" template "reads its code"
look "copy-call-memmove-size-sum-large-pie-no-plt-gcc-O2" template "reads its code"
look "fault-own-w4-skip2-extab-small-pie-gcc-O2" safe_0 "an address in its middle"
look "fault-text-w4-skip1-rodata.extab-small-pie-relocs-gcc-O2" safe_1 "an address in its middle"
look "fault-zero-w8-skip3-extab-small-fixed-gcc-O2" safe_1 "an address in its middle"
look "label-short-xor-other-switch-small-pie-relocs-gcc-O3" expected "reads its code"
look "goto-w4-packed-inc-static-labels-small-pie-gcc-O2" run "address in its middle"
finish
