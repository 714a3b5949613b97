#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the documents refer to is there, and their lines are not too long; and the check sees a link,
# an anchor and a path that lead nowhere.
. "$(dirname "$0")/../lib.sh"
need python3
scratch links

"$root/scripts/check/links" || fail "documents refer to what is not there"

# sees WHAT LINE
sees() {
	printf '%s\n' '# A title' '' "$2" >doc.md
	"$root/scripts/check/links" doc.md >out.txt && fail "not seen: $1"
	says out.txt ':3: ' "$1"
}
# passes WHAT LINE
passes() {
	printf '%s\n' '# A title' '' "$2" >doc.md
	"$root/scripts/check/links" doc.md >out.txt || fail "$1: $(cat out.txt)"
}
long=$(printf 'word %.0s' {1..25})
sees "a link to no file" 'See [this](nowhere.md).'
sees "an anchor of no heading" 'See [this](#another-title).'
sees "a path of no file" 'See `editor/nowhere.c`.'
sees "a long line" "$long"
passes "a link, an anchor, a path" 'See [this](doc.md#a-title), `editor/plan.h` and `tests/e2e`.'
passes "a long row" "| $long |"
passes "long code" "    $long"
passes "names that stand for others" 'Write `daemon/export_NAME.c` or `daemon/stats_<command>.c`.'
finish
