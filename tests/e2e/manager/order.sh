#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker takes up first what is expected to gain most, not what has most samples; programs without an
# estimate come last; without morph beside it, samples decide.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch order
export XDG_CONFIG_HOME=$dir/config

# flat has most samples, but no branch that a layout could save; few has too few for an estimate
cat >flat.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) unsigned int hot(unsigned int n)
{
	unsigned int x = n;
	x = x * 3 + 7; x ^= x >> 5; x = x * 5 + 1; x ^= x << 3; x = x * 9 + 4; x ^= x >> 7;
	x = x * 11 + 3; x ^= x >> 9; x = x * 13 + 2; x ^= x << 4; x = x * 17 + 8; x ^= x >> 3;
	return x;
}
int main(int argc, char **argv)
{
	return (int)(hot(argc > 1 ? (unsigned int)atoi(argv[1]) : 1) & 1);
}
END
gcc -O2 -Wl,--emit-relocs -o flat flat.c && cp newer few || exit 1
profile flat 20000
profile few 600
policy "min-samples = 500"
printf 'program = %s/*\n' "$dir" >etc/watch.d/all.conf

# order: the programs, as their rounds went on
order_is() {
	local now
	now=$(db "SELECT group_concat(name, ' ') FROM (SELECT replace(path, '$dir/', '') AS name FROM history
		WHERE step = 'profile' ORDER BY key)")
	[ "$now" = "$1" ] || fail "$2: the order is '$now', not '$1'"
}

work 0 "by gain" --now
order_is "prog flat few" "by gain"
[ -e state/order ] && fail "by gain: files are left behind"
"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "by gain: $(cat out.txt)"

# ---- nobody can estimate
mkdir bin
cp "$BUILD/morph-worker" bin/
ln -s "$BUILD/morph-optimize" bin/
audits_by_speed bin
worker=$dir/bin/morph-worker
forget
work 0 "by samples" --now
order_is "flat prog few" "by samples"

# ---- an estimate that fails, or says nonsense, costs the estimate alone
for said in 'exit 1' 'kill -9 $$' 'echo "{\"next\": [7, null, \"/nowhere\"]}"' 'echo "{"'; do
	printf '#!/bin/sh\n%s\n' "$said" >bin/morph
	chmod 755 bin/morph
	forget
	work 0 "'$said'" --now
	order_is "flat prog few" "'$said'"
done

# ---- one program has no order: nobody is asked
printf '#!/bin/sh\ntouch %s/asked\n' "$dir" >bin/morph
forget
work 0 "one program" --now prog
[ ! -e asked ] || fail "one program, and yet an estimate"
finish
