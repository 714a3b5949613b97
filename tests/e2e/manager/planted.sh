#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Versions that are worse: one that waits is found slower by a real audit, and is never put in place; one
# that becomes slow in use is undone; a version that does not verify goes no further; and a version that
# is faster, by a planted wait in the original, is adopted.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch planted

# The worker looks for Morph's programs beside itself: here, one that changes what is written.
mkdir bin
cp "$BUILD/morph-worker" bin/
audits_by_speed bin
worker=$dir/bin/morph-worker
# planted COMMAND: what morph-optimize does where it writes an output
planted() {
	rm -f bin/morph-optimize
	cat >bin/morph-optimize <<END
#!/bin/sh
case \$1 in verify | adopt | restore) exec "$BUILD/morph-optimize" "\$@" ;; esac
$1
END
	chmod 755 bin/morph-optimize
}

# ---- slower by a real audit: the same work, with waiting
planted "exec '$BUILD/morph-optimize' --adjust=hot:wait=60 \"\$@\""
rule "mode = adopt" "command = $dir/prog 3000000" "audit-time = 120"
work 0 "waits" --now
state_is not-faster "waits"
history_is "ask:watch profile:done write:done verify:done audit:slower" "waits"
cmp -s prog original || fail "waits, and yet in place"
[ -e backup ] && fail "waits, and yet a backup"
[ "$(db 'SELECT highest < 1 AND highest > 0 FROM job')" = 1 ] || fail "waits: $(db 'SELECT ratio, lowest, highest FROM job')"

# ---- does not verify: a byte of the output is changed
forget
# shellcheck disable=SC2016
planted '"'"$BUILD"'/morph-optimize" "$@" || exit
while [ "$1" != -o ]; do shift; done
at=$(readelf -SW "$2" | sed -n "s/.* \.morph\.text *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p")
printf "\017" | dd of="$2" bs=1 seek=$(printf %d 0x$at) conv=notrunc status=none'
work 0 "broken" --now
state_is refused "broken"
says err.txt 'verify: at 0x' "broken"
cmp -s prog original || fail "broken, and yet in place"

# ---- prints something else: the command notices
forget
planted "exec '$BUILD/morph-optimize' \"\$@\""
cat >different <<END
#!/bin/sh
cmp "$dir/prog" "$dir/original"
END
chmod 755 different
rule "mode = adopt" "command = $dir/different" "audit-time = 60"
work 0 "differs" --now
state_is not-faster "differs"
says err.txt 'prints something else' "differs"
cmp -s prog original || fail "differs, and yet in place"

# ---- becomes slow in use: more samples in its own code for the same work elsewhere
forget
speed 120
rule "mode = adopt" "$(by_speed)"
key=$(db "SELECT key FROM module WHERE path = '$dir/prog' ORDER BY key LIMIT 1")
db "DELETE FROM activity; INSERT INTO activity VALUES($key, 19000, 19000, 6000, 2000, 3000, 0)"
work 0 "in use" --now
state_is adopted "in use"
db "INSERT INTO activity VALUES($key, 19001, 19001, 6300, 2100, 2900, 0)"
work 0 "as fast as before" --now
state_is adopted "as fast as before"
db "UPDATE activity SET app = 9000 WHERE first_day = 19001"
work 0 "slow in use"
state_is undone "slow in use"
cmp -s prog original || fail "slow in use: not the original"
says err.txt 'takes 1.50 times the time for the same work' "slow in use"

# ---- killed by the audit's command, and a training whose output is not of the program
forget
rule "mode = adopt" "command = /bin/sh -c 'kill -9 \$\$'" "audit-time = 20"
work 0 "the command dies" --now
state_is failed "the command dies"
cmp -s prog original || fail "the command dies, and yet in place"

# ---- the audit fails: the reason is kept, not what its commands print before
forget
rule "mode = adopt" "command = /bin/sh -c '$dir/prog; date +%N'" "audit-time = 20"
work 0 "output that varies" --now
state_is failed "output that varies"
db 'SELECT detail FROM job' | grep -q 'its runs give different results (stdout: ' ||
	fail "output that varies: $(db 'SELECT detail FROM job')"

# ---- trained by a command
forget
planted "exec '$BUILD/morph-optimize' \"\$@\""
ln -sf "$BUILD/morphd" "$BUILD/morph-stats" bin/
speed 120
rule "mode = adopt" "train = $dir/prog 3000000" "$(by_speed)"
work 0 "trained" --now
state_is adopted "trained"
[ "$(./prog 999)" = "$(./original 999)" ] || fail "trained: another output"
finish
