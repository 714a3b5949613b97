#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
#
# A real program whose objects were rewritten by an exact profile, and linked again by every linker, prints what
# the original prints, and takes as many branches as the program that was rewritten after the link: at most 2
# points more.
. "$(dirname "$0")/../lib.sh"
need gcc qemu-x86_64
[ -e "$BUILD/inputs/train.lua" ] && [ -d "${MORPH_CACHE:-$HOME/.cache/morph}/src/lua5.4" ] || {
	echo "skip: scripts/works/programs was not run"
	exit 77
}
scratch objects
export BUILD
"$root/scripts/bench/bench-objects" --dir="$dir/bench" lua >table.txt 2>err.txt || fail "bench-objects: $(cat err.txt)"
worst=$(sed -n 's/^| worst .* \([-+][0-9.]*\) |$/\1/p' table.txt)
awk -v worst="$worst" 'BEGIN { exit !(worst != "" && worst <= 2) }' || fail "worst difference: $worst"
awk -F'|' '/^\| lua/ { good = $4 >= 20 && $5 == 0 && $6 > 100 && $7 > 50 } END { exit !good }' table.txt ||
	fail "$(cat table.txt)"
finish
