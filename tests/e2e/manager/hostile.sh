#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker with a policy, names and files that are meant to harm: one message with file and line, and
# nothing is written but in the worker's own directories.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch hostile
speed 120

# ---- the policy: --check names the line, and nothing runs by a wrong one
rule "mode = adopt" "$(by_speed)"
work 0 "check" --check
says out.txt 'etc: 1 rules' "check"
rule "mode = adopt" "trian = /bin/true"
work 2 "a wrong key" --check
says err.txt 'etc/watch.d/prog.conf:3: trian: no such key; the keys are program, package,' "a wrong key"
one_line "a wrong key"
work 2 "a wrong policy" --now
[ -e state ] && fail "a wrong policy, and yet at work"
rule "mode = adopt" "$(by_speed)"
chmod 666 etc/watch.d/prog.conf
work 2 "a rule that others can write" --now
says err.txt 'prog.conf: other users can write it' "a rule that others can write"
chmod 644 etc/watch.d/prog.conf
ln -s /dev/zero etc/watch.d/zero.conf
work 2 "an endless rule" --check
says err.txt 'zero.conf: ' "an endless rule"
rm etc/watch.d/zero.conf
head -c 4096 /dev/urandom >etc/watch.d/random.conf
work 2 "a rule of noise" --check
one_line "a rule of noise"
rm etc/watch.d/random.conf
work 2 "check with a program" --check prog
cmp prog original || fail "wrong policies, and yet a change"

# ---- the state: a directory of somebody else, a link, files that are in the way
mkdir -m 777 open
command_ends 1 "an open state directory" "$worker" --config=etc --db=db --state-dir=open --now
says err.txt 'other users can write there' "an open state directory"
mkdir state
echo precious >precious
ln -s "$dir/precious" state/lock
work 1 "a link for a lock" --now
[ "$(cat precious)" = precious ] || fail "a link for a lock: written through"
rm -r state
work 0 "before links" --now
state_is adopted "before links"
job=$(basename "$(dirname "$(db 'SELECT output FROM job')")")
forget
mkdir -p "state/$job"
for name in messages report evidence.new output.new train; do
	ln -s "$dir/precious" "state/$job/$name"
done
work 0 "links for files of the work" --now
[ "$(cat precious)" = precious ] || fail "links for files of the work: written through"

# ---- a store that contradicts the next rounds: the job begins once more, in a round that the store lacks
forget
policy "min-samples = 1000000"
work 0 "a job that waits" --now
state_is wanted "a job that waits"
policy
db "WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 60)
	INSERT INTO history SELECT NULL, 1, path, x'00', 0, round + n, 'profile', 'profiled', 'done', '', 0, 0, 0, 0, ''
	FROM job, r"
work 0 "a contradicting store" --now
state_is adopted "a contradicting store"
[ "$(db "SELECT count(*) FROM history WHERE step = 'repair'")" = 1 ] ||
	fail "a contradicting store: $(db "SELECT count(*) FROM history WHERE step = 'repair'") repairs"

# ---- the program's path: links, directories, names
forget
mkdir real
mv prog real/prog
ln -s real/prog prog
work 0 "a link" --now
[ -L prog ] || fail "a link: replaced"
rm prog && mv real/prog prog
forget
odd="$dir/pr"$'\n\033'"[31m\"';\$(touch owned)og"
cp original "$odd"
rm etc/watch.d/prog.conf
profile prog 1
work 0 "an odd name" --now "$odd"
grep -q $'\033' err.txt && fail "an odd name: an escape sequence in a message"
[ -e owned ] && fail "an odd name: a shell ran it"
work 1 "no such program" --now no-such-program
one_line "no such program"
work 0 "a text" --now etc/morph.conf
[ "$(db "SELECT state FROM job WHERE path LIKE '%morph.conf'")" = refused ] || fail "a text: not refused"
work 0 "a directory" --now etc

# ---- the store: nonsense in a job gives one message
rule "mode = adopt" "$(by_speed)"
forget
work 0 "before nonsense" --now
db "UPDATE job SET state = 'strange'"
work 1 "a strange state" --now
says err.txt 'db: damaged: an impossible job' "a strange state"
forget
work 0 "before another output" --now
db "UPDATE job SET output = '/etc/passwd', layout = file_hash, state = 'verified'"
cp backup/*/*[0-9a-f] prog 2>/dev/null
work 0 "another output" --now
says err.txt 'prog: wanted: the record of the round did not fit together' "another output"
state_is adopted "another output"
[ "$(db 'SELECT round FROM job')" = 2 ] || fail "another output: no new round"
"$BUILD/morph-optimize" verify --report=none original prog || fail "another output: in place"
if [ "$(id -u)" = 0 ]; then
	forget
	chmod 700 "$dir" # nobody cannot enter: the command cannot run
	work 0 "a command that cannot run" --now
	cmp -s prog original || fail "a command that cannot run, and yet in place"
	chmod 755 "$dir"
fi
finish
