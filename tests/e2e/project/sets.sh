#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No test is lost between `make check` and `make check-all`: the two sets have no test in common and are all
# tests together; each file of a test is in a set; a test that `make check` leaves out says why.
. "$(dirname "$0")/../lib.sh"
scratch sets
for set in check all rest long; do
	# Without an option, the set of make check.
	(cd "$root" && scripts/check/run --build="$BUILD" --list $([ $set = check ] || echo --$set)) | sort >$set ||
		fail "--list --$set"
	[ -s $set ] || fail "$set: no test"
	[ -z "$(uniq -d $set)" ] || fail "$set: twice: $(uniq -d $set)"
done
[ -z "$(comm -12 check rest)" ] || fail "in both: $(comm -12 check rest)"
sort check rest | cmp - all || fail "make check and the rest are not all: $(sort check rest | diff - all)"
[ -z "$(comm -23 all long)" ] || fail "not in make check-long: $(comm -23 all long)"

cd "$root" || exit 1
# guests: tests can be listed only with a kernel
guests=$(scripts/kernel/kernels --list)
grep -nE '^(#|//) check-all:' -r tests/unit tests/e2e tests/guest >"$dir/later"
grep -rl '^# long$' tests/e2e tests/guest >"$dir/never"
sed -nE 's,^([^:]*):[0-9]+:[^:]*: *$,\1,p' "$dir/later" | while read -r file; do echo "$file: check-all without a reason"; done >"$dir/bad"
while read -r file; do
	name=${file##*/} name=${name%.*}
	set=check
	! grep -q "^$file:" "$dir/later" || set=rest
	! grep -qx "$file" "$dir/never" || set=long
	case $file in
	tests/e2e/*) name=${file#tests/} name=${name%.sh} ;;
	tests/guest/*)
		[ -n "$guests" ] || continue
		name=guest/[0-9.]*/$name ;;
	esac
	grep -qx "$name" "$dir/$set" || echo "$file: not in the set $set"
done < <(find tests/unit -name 'test_*.c'; find tests/e2e -mindepth 2 -name '*.sh' ! -name 'lib-*'
	find tests/guest -maxdepth 1 -name '*.sh' ! -name lib.sh) >>"$dir/bad"
while read -r line; do fail "$line"; done <"$dir/bad"
for file in tests/fuzz/fuzz_*.c; do
	name=$(basename "$file" .c)
	grep -qx "seeds_${name#fuzz_}" "$dir/check" || fail "$name: its seeds are not in make check"
	grep -qx "$name" "$dir/rest" || fail "$name: not in make check-all"
done
grep -q 'check "check-all REST=1"' .ci/run || fail ".ci/run does not run both"
finish
