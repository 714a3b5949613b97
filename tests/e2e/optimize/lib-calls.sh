# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Shared by the tests of layouts that rewrite calls; sourced behind lib.sh.

# optimise_calls WITHOUT COUNTED FILE [OPTIONS]: FILE.out is the verified output with --lab=WITHOUT, and $calls the
# number of its calls that the report counts as COUNTED
optimise_calls() {
	local without=$1 counted=$2 file=$3
	shift 3
	"$BUILD/morph-optimize" --all --lab="$without" --report=json "$@" -o "$file.out" "$file" \
		>report.json 2>err.txt || {
		fail "$file $*: $(cat err.txt)"
		return 1
	}
	calls=$(jq ".code.$counted" report.json)
	[ "$calls" = "$(jq ".verified.$counted" report.json)" ] || fail "$file $*: verify counts other calls"
	"$BUILD/morph-optimize" verify "$file" "$file.out" >/dev/null 2>&1 || fail "$file $*: does not verify again"
}

# same WHAT FILE [VARIABLE=VALUE...]: FILE and FILE.out print the same, and end in the same way
same() {
	local want got
	want=$(env "${@:3}" "./$2" 2>&1; echo $?)
	got=$(env "${@:3}" "./$2.out" 2>&1; echo $?)
	[ "$want" = "$got" ] || fail "$1 ${*:3}: '$got' instead of '$want'"
}
