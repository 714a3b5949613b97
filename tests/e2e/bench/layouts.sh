#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/plugin/layouts.c: a layout that moves nothing misses as often as fetch.c counts; one that puts a
# function far away needs a page more, and misses no less.
. "$(dirname "$0")/../lib.sh"
need qemu-x86_64 gcc nm setarch
scratch layouts

cat >p.c <<'EOF'
__attribute__((noinline)) int callee(int x)
{
	return 3 * x + 1;
}
int main(void)
{
	volatile int sum = 0;

	for (int i = 0; i < 1000; i++)
		sum = callee(sum);
	return 0;
}
EOF
gcc -O1 -falign-functions=64 -o p p.c || exit 1
: >none
callee=$(nm p | awk '$3 == "callee" { print $1 }')
echo "0x$callee 16 $((0x$callee + (1 << 20)))" >far

emulate() {
	setarch -R qemu-x86_64 -seed 1 "$@"
}
emulate -plugin "$BUILD/plugin/fetch.so,out=fetch.json" \
	-plugin "$BUILD/plugin/layouts.so,out=layouts.txt,layout=none:none,layout=far:far" ./p ||
	fail "the program fails"
# shellcheck disable=SC2034 # The names of the columns.
read -r name i1 itlb pages < <(grep '^none ' layouts.txt)
grep -q "\"i1_misses\": $i1, \"itlb_misses\": $itlb}" fetch.json ||
	fail "not the misses of fetch.c: $(cat layouts.txt fetch.json)"
read -r name far_i1 far_itlb far_pages < <(grep '^far ' layouts.txt)
[ "$far_pages" = $((pages + 1)) ] || fail "not a page more: $(cat layouts.txt)"
[ "$far_itlb" -ge "$itlb" ] || fail "fewer misses with a page more: $(cat layouts.txt)"
[ "$far_i1" -le $((i1 + 1)) ] || fail "misses of lines that did not change: $(cat layouts.txt)"

for wrong in out=x layout=far:missing out=x,layout=far what=x; do
	if emulate -plugin "$BUILD/plugin/layouts.so,$wrong" ./p >out.txt 2>&1; then
		fail "accepts $wrong"
	fi
done
finish
