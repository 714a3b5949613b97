#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker: a whole round. Advice changes no file; only a version that an audit found faster is put
# in place; an undone version is never tried again; an upgrade begins a new round.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch round

is() { # FILE FILE WHAT
	cmp -s "$1" "$2" || fail "$3: $1 is not $2"
}

# ---- advise: everything but the change
speed 120
rule "mode = advise" "$(by_speed)"
work 0 "advise" --now
state_is advised "advise"
history_is "ask:watch profile:done write:done verify:done audit:faster advise:faster" "advise"
is prog original "advise"
[ -e backup ] && fail "advise, and yet a backup"
"$BUILD/morph-optimize" verify --report=none original "$(db 'SELECT output FROM job')" ||
	fail "advise: the output does not verify"
[ "$(db 'SELECT round(ratio, 3) FROM job')" = 1.2 ] || fail "advise: $(db 'SELECT ratio FROM job')"
[ "$(db 'SELECT predicted > 0.1 AND predicted < 1.2 FROM job')" = 1 ] || fail "advise: no prediction"
work 0 "advise again" --now
history_is "ask:watch profile:done write:done verify:done audit:faster advise:faster" "advise again"
[ "$(db 'SELECT disk_bytes > 0 AND cpu_ms > 0 FROM spent')" = 1 ] || fail "no costs: $(db 'SELECT * FROM spent')"

# ---- the policy changes: what was audited is put in place, without another audit
rule "mode = adopt" "$(by_speed)"
work 0 "allowed" --now
state_is adopted "allowed"
history_is "ask:watch profile:done write:done verify:done audit:faster advise:faster allow:allowed adopt:done" "allowed"
is prog "$(db 'SELECT output FROM job')" "allowed"
[ "$(./prog 999)" = "$(./original 999)" ] || fail "allowed: another output"
work 0 "on probation" --now
state_is adopted "on probation"

# ---- it crashes: the original is back, and this version is never tried again
layout=$(db 'SELECT layout FROM job')
touch cores/core.prog.1000.0123456789abcdef.77.1700000000
work 0 "crashed" --now
state_is undone "crashed"
is prog original "crashed"
says err.txt 'prog: undoing: it crashed 1 times since it was put in place' "crashed"
[ "$(db 'SELECT layout FROM rejected_layout')" = "$layout" ] || fail "crashed: the layout is not rejected"
policy "retry = 1s"
tries=0
until [ "$(db 'SELECT state FROM job')" = not-faster ] || [ $((++tries)) -gt 200 ]; do
	work 0 "tried again" --now
done
says err.txt 'the same version was tried before, and was not kept' "tried again"
is prog original "tried again"
policy

# ---- probation ends
forget
policy "probation = 0"
work 0 "kept" --now
state_is kept "kept"
history_is "ask:watch profile:done write:done verify:done audit:faster adopt:done probation:kept" "kept"
cmp -s prog original && fail "kept, and yet the original"

# ---- an upgrade: what was written stays, and a new round begins; no older file comes back. The clock was set back meanwhile
db "UPDATE job SET since_s = unixepoch() + 86400"
cp newer prog.dpkg-new && mv prog.dpkg-new prog
work 0 "upgraded" --now
state_is wanted "upgraded"
is prog newer "upgraded"
says err.txt 'it was upgraded' "upgraded"
[ "$(db "SELECT output = '' AND layout = '' AND round = 2 FROM job")" = 1 ] || fail "upgraded: not forgotten"
profile prog 12000
cp newer original # for ./speed
work 0 "a new round" --now
state_is kept "a new round"
cmp -s prog newer && fail "a new round, and yet not adopted"
gcc -O2 -Wl,--emit-relocs -o original prog.c

# ---- the version is put in place, and yet the call fails: it is on probation all the same
forget
rm worker/morph-optimize
cat >worker/morph-optimize <<END
#!/bin/sh
"$BUILD/morph-optimize" "\$@" || exit
[ "\$1" != adopt ]
END
chmod 755 worker/morph-optimize
work 0 "adopted by a call that fails" --now
state_is kept "adopted by a call that fails"
cmp -s prog original && fail "adopted by a call that fails: the original is there"
ln -sf "$BUILD/morph-optimize" worker/

# ---- not faster
forget
speed 80
work 0 "slower" --now
state_is not-faster "slower"
is prog original "slower"
[ "$(db 'SELECT count(*) FROM rejected_layout')" = 1 ] || fail "slower: the layout is not rejected"
forget
speed 100
work 0 "equal" --now
[ "$(db 'SELECT state FROM job')" = not-faster ] || [ "$(db 'SELECT state FROM job')" = undecided ] ||
	fail "equal: $(db 'SELECT state FROM job')"
is prog original "equal"

# ---- no way to audit: advice, whatever the mode
forget
rule "mode = adopt"
work 0 "not audited" --now
state_is advised "not audited"
is prog original "not audited"
says err.txt 'cannot be audited' "not audited"
forget
rm etc/watch.d/prog.conf
work 0 "no rule" --now prog
state_is advised "no rule"
[ "$(db 'SELECT asked FROM job')" = request ] || fail "no rule: asked by $(db 'SELECT asked FROM job')"
is prog original "no rule"

# ---- a share of all samples
forget
work 0 "no share" --now
[ -z "$(db "SELECT path FROM job")" ] || fail "no share, and yet a job"
policy
sed -i "s/^share.*/share = 50%/" etc/morph.conf
work 0 "share" --now
state_is advised "share"
[ "$(db 'SELECT asked FROM job')" = timer ] || fail "share: asked by $(db 'SELECT asked FROM job')"
policy

# ---- too few samples, set-id, gone
speed 120
rule "mode = adopt" "$(by_speed)"
forget
policy "min-samples = 1000000"
work 0 "few samples" --now
state_is wanted "few samples"
db 'SELECT detail FROM job' | grep -q 'waits for 1000000' || fail "few samples: $(db 'SELECT detail FROM job')"
policy "exclude = $dir/pr*"
work 0 "excluded" --now
state_is refused "excluded"
forget
policy
chmod 4755 prog
work 0 "set-id" --now
state_is refused "set-id"
says err.txt 'set-user-ID' "set-id"
forget
chmod 755 prog
work 0 "before gone" --now
state_is adopted "before gone"
rm prog
work 0 "gone" --now
state_is gone "gone"
[ -e prog ] && fail "gone, and yet there"
cp original prog
work 0 "back" --now
state_is adopted "back"

# ---- what others did by hand
"$BUILD/morph-optimize" restore --backup-dir=backup --report=none prog || fail "restore"
work 0 "restored by hand" --now
state_is undone "restored by hand"
is prog original "restored by hand"

# ---- the store is not believed: a job that is called audited is not adopted without the evidence
forget
rule "mode = advise" "$(by_speed)"
work 0 "evidence" --now
state_is advised "evidence"
rule "mode = adopt" "$(by_speed)"
rm state/*/evidence
db "UPDATE job SET state = 'audited'"
work 0 "no evidence" --now
state_is failed "no evidence"
is prog original "no evidence"

# ---- one worker at a time; a busy machine; a budget
forget
policy "cost = 0" "load = 1000" "battery = yes"
work 0 "no budget"
state_is profiled "no budget"
says err.txt 'the CPU time of today is used up' "no budget"
policy "disk = 0" "load = 1000" "battery = yes"
work 0 "no disk"
says err.txt 'what may be written today is written' "no disk"
policy "load = 0"
work 0 "busy"
says err.txt 'the load is\|battery' "busy"
exec 9>>state/lock
flock 9
work 1 "two workers" --now
says err.txt 'another morph-worker is at work' "two workers"
exec 9>&-
finish
