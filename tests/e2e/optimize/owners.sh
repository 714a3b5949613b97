#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every byte of an output has one owner: verify says so, names the kind of the output, and refuses other
# bytes, but for a reason. `verify --kind' refuses other kinds.
. "$(dirname "$0")/../lib.sh"
scratch owners
need gcc jq

# ends STATUS WHAT ARGS
ends() {
	command_ends "$1" "$2" "$BUILD/morph-optimize" "${@:3}"
}

gcc -O2 -o prog "$root/tests/data/leaf.c" 2>/dev/null || fail "no program"
ends 0 "a layout" --all prog -o layout
ends 0 "a counting version" instrument --kind=edges --all prog -o counting
ends 0 "a version that polls" instrument --kind=pep,poll --all prog -o polling
ends 0 "the kind of a layout" verify --json --explain prog layout
[ "$(jq -r .kind out.txt)" = layout ] || fail "a layout is called $(jq -r .kind out.txt)"
[ "$(jq '[.explanation.owned[].bytes] | add' out.txt)" = "$(stat -c %s layout)" ] ||
	fail "the owners do not have all bytes of the layout"
ends 0 "one of two kinds" verify --kind=layout --kind=edges prog counting
says out.txt 'kind  *edges' "one of two kinds"
for file in counting polling; do
	ends 0 "$file, any kind" verify prog $file
	ends 4 "$file is no layout" verify --kind=layout prog $file
	says err.txt 'is of another kind' "$file is no layout"
	ends 4 "$file adopted" adopt prog $file
done
ends 4 "a layout does not poll" verify --kind=pep+poll prog layout
ends 2 "no such kind" verify --kind=none prog layout

"$root/scripts/check/mutate-outputs" --bytes=200 --changes=400 "$dir/prog" >owners.txt || fail "$(cat owners.txt)"
says owners.txt '^[1-9][0-9]* changes, ' "bytes and other changes"
finish
