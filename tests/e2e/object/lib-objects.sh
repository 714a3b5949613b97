# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Shared by the tests of relocatable objects; sourced behind lib.sh.

optimize=$BUILD/morph-optimize
linkers=
for l in bfd gold lld mold; do
	{ command -v ld.$l || command -v $l; } >/dev/null 2>&1 && linkers="$linkers $l"
done

# rewritten SEED PROGRAM FILE OUT: rewrite and verify
rewritten() {
	rm -f "$4"
	command_ends 0 "rewrite $3 ($what)" "$optimize" "$3" --program="$2" --lab=stress-layout="$1" -o "$4" || return
	command_ends 0 "verify $4 ($what)" "$optimize" verify "$3" "$4"
}
