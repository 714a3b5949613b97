#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker: the round after an upgrade begins with the profile of the version before, as far as the code is
# the same; history and explain say how much that is; a program that became another one waits for its own samples.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch upgrade
speed 120
rule "mode = adopt" "$(by_speed)"
policy "probation = 0"

# upgrade_to FILE: as dpkg replaces a file; ./speed calls the new one the original
upgrade_to() {
	cp "$1" prog.dpkg-new && mv prog.dpkg-new prog
	cp "$1" original
}

# reason_is PATTERN WHAT: the reason of the last step "match"
reason_is() {
	local now
	now=$(db "SELECT reason FROM history WHERE step = 'match' ORDER BY key DESC LIMIT 1")
	[[ $now =~ $1 ]] || fail "$2: the reason is '$now', not '$1'"
}

# morph COMMAND ARGS...: asks about ./prog
morph() {
	"$BUILD/morph" --db="$dir/db" "$1" "${@:2}" "$dir/prog" >out.txt 2>err.txt || fail "morph $1: $(cat err.txt)"
}

# ---- one function was mended
sed 's/return x - 7;/return x > 7 ? x - 7 : 0;/' prog.c >mended.c
gcc -O2 -Wl,--emit-relocs -o mended mended.c
work 0 "the first version" --now
state_is kept "the first version"
round1="ask:watch profile:done write:done verify:done audit:faster adopt:done probation:kept"
history_is "$round1" "the first version"
upgrade_to mended
work 0 "one function was mended" --now
state_is kept "one function was mended"
history_is "$round1 upgrade:changed carry:tried match:done write:done verify:done audit:faster adopt:done probation:kept" \
	"one function was mended"
reason_is '^(9[0-9]\.[0-9]|100\.0) % of the samples of the version before \([0-9]+ of 12000\) .* [0-9]+ of [0-9]+ functions' \
	"one function was mended"
[ "$(db "SELECT count(*) FROM module WHERE path = '$dir/prog'")" = 1 ] || fail "the new version has samples of its own"
cmp -s prog mended && fail "one function was mended, and yet the original is there"
[ "$(./prog 999)" = "$(./mended 999)" ] || fail "one function was mended: another output"
morph history
says out.txt 'of the samples of the version before' "history"
morph explain
tr '\n' ' ' <out.txt >line.txt
says line.txt 'After the upgrade: [0-9.]* % of the samples of the version before ([0-9]* of 12000) lie in code' "explain"
morph explain --json
jq -e '.carried_over | test("of the samples of the version before")' out.txt >/dev/null || fail "explain --json: $(cat out.txt)"

# ---- it became another program: the profile is not used, and the samples of the new version are
cat >another.c <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	size_t len = 0;
	for (int i = 1; i < argc; i++)
		len += strlen(argv[i]);
	printf("%zu\n", len);
	return len > 100;
}
END
gcc -O2 -Wl,--emit-relocs -o another another.c
upgrade_to another
work 0 "another program" --now
state_is wanted "another program"
reason_is '^(0\.0 % of the samples|the samples of the version before do not suffice)' "another program"
history_is "$round1 upgrade:changed carry:tried match:done write:done verify:done audit:faster adopt:done probation:kept \
upgrade:changed carry:tried match:too-little" "another program"
cmp -s prog another || fail "another program: it was replaced"
work 0 "another program, again" --now
state_is wanted "another program, again"
[ "$(db "SELECT count(*) FROM history WHERE step = 'match' AND verdict = 'too-little'")" = 1 ] ||
	fail "another program: carried over more than once"
morph explain
says out.txt 'waits for its turn' "explain: another program"

# ---- few samples of the version before: nothing to carry over
forget
db "DELETE FROM fingerprint"
policy "probation = 0" "min-samples = 20000"
upgrade_to mended
work 0 "few samples" --now
state_is wanted "few samples"
history_is "ask:watch" "few samples"

# ---- a fingerprint is made for the next upgrade, of the original in the backups
gcc -O2 -Wl,--emit-relocs -o original prog.c
forget
policy "probation = 0"
work 0 "a version in use" --now
state_is kept "a version in use"
db "DELETE FROM fingerprint"
work 0 "remembered" --now
[ "$(db "SELECT count(*) FROM fingerprint")" = 1 ] || fail "remembered: no fingerprint was made"
db "UPDATE fingerprint SET made_s = 1"
work 0 "remembered anew" --now
[ "$(db "SELECT made_s > 1 FROM fingerprint")" = 1 ] || fail "remembered anew: the old fingerprint was not replaced"
history_is "$round1" "remembered anew"
db "DELETE FROM fingerprint"
rm -r backup
# Beside its output it would be found.
mkdir apart && mv original apart/
work 0 "no original" --now
work 0 "no original, again" --now
history_is "$round1 remember:failed" "no original"
finish
