#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# timeout: 3600
# The relinkable test programs build, contain relocations, and behave like
# Debian's own programs. Their test inputs differ from their training inputs.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root" || exit 1
nr_failed=0
fail() {
	echo "FAIL: $*"
	nr_failed=$((nr_failed + 1))
}

if ! scripts/works/programs --inputs speedtest1 lua gzip sort bash; then
	echo "skip: the test programs could not be built (no network?)"
	exit 77
fi
work=$TMPDIR/work
mkdir "$work" && cd "$work" || exit 1

for name in $("$root/scripts/works/workload" --names); do
	bin=$BUILD/programs/$name-pie
	readelf -SW "$bin" | grep -qF .rela.text || fail "$name: no .rela.text"
	short=$("$root/scripts/works/workload" "$name" short "$bin")
	filter=$("$root/scripts/works/workload" "$name" filter)
	sh -c "$short" >out.raw || fail "$name: $short: exit $?"
	sh -c "$filter" <out.raw >out.1
	sh -c "$short" | sh -c "$filter" >out.2
	[ -s out.1 ] || fail "$name: no output"
	cmp -s out.1 out.2 || fail "$name: the output differs from run to run"
	case $name in
	gzip|sort|bash)
		cp "$(command -v "$name")" "$name-stock"
		sh -c "$("$root/scripts/works/workload" "$name" short "./$name-stock")" >out.stock
		case $name in
		gzip) gzip -dc out.1 >a && gzip -dc out.stock >b && cmp -s a b ;;
		*) cmp -s out.1 out.stock ;;
		esac || fail "$name: not what Debian's $name prints" ;;
	esac
	train=$("$root/scripts/works/workload" "$name" train X)
	full=$("$root/scripts/works/workload" "$name" test X)
	[ "$train" != "$full" ] || fail "$name: tested with what it is trained with"
done
[ $nr_failed = 0 ]
