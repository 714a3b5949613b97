#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command morph: its page, names of programs, what each command says and does, and what it leaves
# as it was. Nothing is sampled: the profile is made.
. "$(dirname "$0")/../lib.sh"
. "$root/tests/e2e/manager/lib-manager.sh"
need gcc objdump readelf jq sqlite3
manager_scratch morph
export XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config STATE_DIRECTORY=$dir/work
unset MORPH_DB
morph="$BUILD/morph"
m() {
	command_ends "$1" "$2" "$morph" --db=db --backup-dir=backup "${@:3}"
}

# ---- the prior of the estimate is what the benchmarks say
if command -v python3 >/dev/null; then
	"$root/scripts/report/worth-prior" --check || fail "worth_prior.h"
fi

# ---- the page
m 0 "the page"
[ "$(wc -l <out.txt)" -le 24 ] || fail "the page has $(wc -l <out.txt) lines"
[ "$(awk '{ if (length > n) n = length } END { print n }' out.txt)" -le 80 ] || fail "wider than 80: $(cat out.txt)"
says out.txt '^Morph is not collecting: morphd does not run' "the page"
says out.txt '100.00 % .*prog  *not tried yet$' "the page"
says out.txt '^Optimised: nothing yet' "the page"
says out.txt "^Next: morph optimize $dir/prog" "the page"
says out.txt 'may gain ' "the page"
m 0 "the page as JSON" --json
json "the page as JSON" '.command == "overview" and .collector.runs == false and .effect.audits == 0 and
	(.programs[0].expected | .least < .percent and .percent < .most)'
command_ends 3 "no database" "$morph" --db=none.db
for words in top list history report 'explain prog' 'optimize prog' 'adopt prog'; do
	# shellcheck disable=SC2086
	command_ends 3 "no database: $words" "$morph" --db=none.db $words
	says err.txt 'nothing was collected yet: .*morphd run -- COMMAND' "no database: $words"
done
if command -v script >/dev/null; then
	script -qc "'$morph' --db=db report" /dev/null >tty.txt </dev/null
	says tty.txt 'name a file with --output=FILE' "a report on a terminal"
	! grep -q '<html' tty.txt || fail "HTML on a terminal"
fi
[ ! -e none.db ] || fail "a question made a database"
echo "no database, no database, no database" >junk.db
command_ends 1 "a damaged database" "$morph" --db=junk.db
one_line "a damaged database"

# ---- a round that waits for samples: how many are lacking, and when they come
wanted() { # DB: a job that waits
	sqlite3 "$1" "INSERT INTO job SELECT NULL, path, build_id, text_hash, '', 'wanted', unixepoch(), 'timer', 0, 1, 0,
		'it has too few', '', '', 0, 0, 0, 0, 0, 0, 0, 0 FROM module WHERE path = '$dir/prog'"
}
{ grep -v ': cycles' perf.text; grep ': cycles' perf.text | head -n 4000; } >few.text
"$BUILD/morph-stats" --db waiting.db import few.text >/dev/null || fail "import"
wanted waiting.db
command_ends 0 "waiting" "$morph" --db=waiting.db explain ./prog
says out.txt '^A round begins after 6000 more samples of it: in about [0-9]* days*, at the rate since yesterday' "waiting"
command_ends 0 "waiting as JSON" "$morph" --db=waiting.db --json explain ./prog
# 4,000 samples in one to two days.
json "waiting as JSON" '.samples_lacking == 6000 and .seconds_lacking >= 1.5 * 86400 and .seconds_lacking <= 3.1 * 86400'
sqlite3 waiting.db "UPDATE bucket SET first_day = first_day - 5, last_day = last_day - 5"
command_ends 0 "waiting in vain" "$morph" --db=waiting.db explain ./prog
says out.txt '; since yesterday there was none' "waiting in vain"
cp db enough.db
wanted enough.db
command_ends 0 "not waiting" "$morph" --db=enough.db --json explain ./prog
json "not waiting" '.samples_lacking == 0 and .seconds_lacking == null'

# ---- where everyday use is counted, a round begins sooner, unless the program could not be counted
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir -p user/config/morph
	printf '%s\n' 'mode = adopt' 'counting = yes' >user/config/morph/morph.conf
	{ grep -v ': cycles' perf.text; grep ': cycles' perf.text | head -n 400; } >few.text
	"$BUILD/morph-stats" --db user/db import few.text >/dev/null || fail "import"
	wanted user/db
	chown -R 65534:65534 user
	as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_CONFIG_HOME="$dir/user/config")
	command_ends 0 "to be counted" "${as_user[@]}" "$morph" --db=user/db --json explain "$dir/prog"
	json "to be counted" '.samples_lacking == 600'
	sqlite3 user/db "INSERT INTO history SELECT NULL, 1, path, build_id, text_hash, round, 'count', 'wanted',
		'by samples', 'it cannot be counted', 0, 0, 0, 0, '' FROM job"
	chown -R 65534:65534 user
	command_ends 0 "not to be counted" "${as_user[@]}" "$morph" --db=user/db --json explain "$dir/prog"
	json "not to be counted" '.samples_lacking == 9600'
fi

# ---- a round that is under way needs no command of the user's
sqlite3 enough.db "UPDATE job SET state = 'counting'"
command_ends 0 "under way" "$morph" --db=enough.db
says out.txt "^Next, by itself: $dir/prog, counts at times; .morph explain. says more" "under way"
[ "$(wc -l <out.txt)" -le 24 ] || fail "under way: the page has $(wc -l <out.txt) lines"

# ---- other programs, and no such command
m 2 "an unknown command" frobnicate
one_line "an unknown command"
m 2 "a strange command" ../../bin/true
command_ends 0 "morph stats" "$morph" stats --db=db query
says out.txt "$dir/prog" "morph stats"
mkdir elsewhere && printf '#!/bin/sh\necho "other $*"\n' >elsewhere/morph-other && chmod +x elsewhere/morph-other
PATH=$dir/elsewhere:$PATH command_ends 0 "a program in PATH" "$morph" other a -b
says out.txt '^other a -b$' "a program in PATH"

# ---- names
build_id=$(readelf -n prog | awk '/Build ID/ { print $3 }')
mkdir bin && ln -s ../prog bin/tool
for name in ./prog prog "$dir/prog" "${build_id:0:12}" "build-id:${build_id:0:8}"; do
	m 0 "explain $name" explain "$name"
	says out.txt "^$dir/prog: not tried yet" "explain $name"
done
PATH=$dir/bin:$PATH m 0 "a command" explain tool
says out.txt "^$dir/prog: " "a command"
m 1 "no such name" explain nothing-has-this-name
m 2 "a command of morph stats" import
says err.txt 'morph stats --help' "a command of morph stats"
one_line "no such name"
m 1 "a script" explain "$0"
mkdir other && cp newer other/prog && profile other/prog 5000
m 2 "two programs of one name" explain prog
one_line "two programs of one name"
says err.txt "$dir/prog, $dir/other/prog\|$dir/other/prog, $dir/prog" "two programs of one name"
m 0 "a program without samples" explain ./newer
cp /bin/true unsampled
m 0 "no profile" explain ./unsampled
says out.txt 'no profile' "no profile"
m 3 "too little profile" optimize ./unsampled
says err.txt 'too little profile of it; .morphd run -- COMMAND' "too little profile"
m 0 "too little profile: explain" explain ./unsampled
tr '\n' ' ' <out.txt >line.txt
says line.txt 'there was too little profile of it when somebody asked' "too little profile: explain"
m 4 "undo of a file that nobody replaced" undo ./unsampled
says err.txt 'Morph has not replaced this file' "undo of a file that nobody replaced"
m 0 "a loader" explain /lib64/ld-linux-x86-64.so.2
m 4 "what nobody may optimise" optimize /lib64/ld-linux-x86-64.so.2
m 1 "a file that is not there" optimize ./missing

# ---- optimize, adopt, undo
m 1 "adopt before optimize" adopt ./prog
m 3 "too little profile" optimize ./unsampled
cmp -s prog original || fail "optimize has changed the program"
m 0 "optimize" --json optimize ./prog
json "optimize" '.action == "optimize" and .programs[0].state == "advised" and .programs[0].status == 0'
cmp -s prog original || fail "optimize has changed the program"
m 0 "the page with advice"
says out.txt 'written, not measured' "the page with advice"
m 0 "explain what nobody measured" explain ./prog
tr '\n' ' ' <out.txt >line.txt
says line.txt 'nobody measured whether it is faster: morph optimize PROGRAM -- COMMAND' "explain what nobody measured"
mkfifo hold
./prog 400000000 <hold >/dev/null &
runs=$!
exec 9>hold
for _ in {1..600}; do
	[ "$(readlink /proc/$runs/exe)" != "$dir/prog" ] || break
	sleep 0.1
done
m 0 "adopt" adopt ./prog
cmp -s prog original && fail "adopt has not changed the program"
[ "$(./prog)" = "$(./original)" ] || fail "the adopted program prints something else"
m 0 "list" --json list
json "list" ".programs[] | select(.path == \"$dir/prog\") | .optimised and .state == \"adopted\""
[ ! -e /proc/$runs/exe ] || [ "$(readlink /proc/$runs/exe)" != "$dir/prog (deleted)" ] ||
	json "who uses the old file" ".programs[] | select(.path == \"$dir/prog\") | .old_file_users[] | select(.pid == $runs)"
exec 9>&-
kill $runs 2>/dev/null
wait $runs 2>/dev/null
m 1 "optimize what is optimised" optimize ./prog
# The worker knows the version by its bytes: it is on probation, and is not taken for one of somebody else's.
worker_looks() {
	command_ends 0 "$1" "$worker" --lab-coredumps="$dir/cores" --config=etc --db=db --state-dir=work --backup-dir=backup --now
	[ "$(db "SELECT state FROM job WHERE path = '$dir/prog'")" = adopted ] ||
		fail "$1: it is $(db "SELECT state, detail FROM job WHERE path = '$dir/prog'")"
}
worker_looks "the worker looks at what was adopted by hand"
m 0 "undo" undo ./prog
cmp -s prog original || fail "undo has not put the original back"
m 4 "undo twice" undo ./prog
m 0 "history" --json history ./prog
json "history" '[.decisions[].step] == ["ask", "profile", "write", "verify", "advise", "adopt", "undo", "restore"]'
cp /bin/false never
m 3 "history of nothing" history ./never
m 0 "history of all" history
says out.txt "restore .*$dir/prog" "history of all"
# undo --all needs neither the database nor a job.
"$BUILD/morph-optimize" --db=db --backup-dir=backup --in-place prog >/dev/null || fail "--in-place"
command_ends 0 "undo --all" "$morph" --db=none.db --backup-dir=backup undo --all
cmp -s prog original || fail "undo --all has not put the original back"
command_ends 0 "undo --all again" "$morph" --db=none.db --backup-dir=backup undo --all
says out.txt 'No program is replaced' "undo --all again"
[ ! -e none.db ] || fail "undo made a database"
# An upgrade in between stays.
"$BUILD/morph-optimize" --db=db --backup-dir=backup --in-place prog >/dev/null || fail "--in-place"
cp newer upgraded && mv upgraded prog
command_ends 0 "undo --all after an upgrade" "$morph" --db=none.db --backup-dir=backup undo --all
cmp -s prog newer || fail "undo has replaced an upgrade"
# A place that cannot be read is no success; one that is not there is named, since its file may have been moved.
rm prog
ln -s prog prog
command_ends 1 "undo --all, unreadable" "$morph" --db=none.db --backup-dir=backup undo --all
says err.txt "$dir/prog: cannot be read" "undo --all, unreadable"
rm prog
command_ends 0 "undo --all, missing" "$morph" --db=none.db --backup-dir=backup undo --all
says err.txt "$dir/prog: is not there.*its original stays" "undo --all, missing"
cp original prog
command_ends 0 "undo --all, and no doubt" "$morph" --db=none.db --backup-dir=backup undo --all
[ ! -s err.txt ] || fail "undo --all, and no doubt: $(cat err.txt)"
for record in backup/*/*.json; do cp "$record" record && : >"$record"; done
command_ends 1 "undo --all, a damaged record" "$morph" --db=none.db --backup-dir=backup undo --all
says err.txt "$record: cannot be read" "undo --all, a damaged record"
cat record >"$record"

# ---- with a command: the audit decides
m 1 "a command that fails" --json optimize ./prog -- ./no-such-command
json "a command that fails" '.programs[0].state == "failed"'
json "why the audit failed" '.programs[0].reason == "./no-such-command: cannot be executed: No such file or directory"'
printf '#!/bin/sh\n%s/prog; date +%%N\n' "$dir" >vary
chmod +x vary
m 1 "output that varies" --json optimize ./prog -- ./vary
json "why output is not compared" '.programs[0].reason | test("its runs give different results.*--filter can remove")'
"$morph" --json --db=db --backup-dir=backup optimize --filter='sed -n 1p' ./prog -- ./vary >out.txt 2>err.txt
case $? in
0) ;;
5 | 7) says err.txt 'measured: [0-9.]* % ' "a filter" ;;
*) fail "a filter: $(cat err.txt)" ;;
esac
m 2 "a filter without a command" optimize --filter=cat ./prog
m 1 "a command that fails" optimize ./prog -- ./no-such-command
m 0 "explain a failure" explain ./prog
says out.txt 'failed' "explain a failure"
m 0 "the page with a failure"
says out.txt '^Failed: ' "the page with a failure"

# ---- a version of the worker: its own evidence counts, not what the store says
job() { db "SELECT $1 FROM job WHERE path = '$dir/prog'"; }
speed 120
cp original prog
printf '%s\n' "program = $dir/prog" "$(by_speed)" >etc/watch.d/by-worker.conf
command_ends 0 "the worker" "$worker" --config=etc --db=db --state-dir=work --backup-dir=backup --now ./prog
[ "$(job state)" = advised ] || fail "the worker: $(job state), $(job detail)"
version=$(echo work/*/output)
cp "$version" version && cp work/*/evidence evidence
db "UPDATE job SET output = '$dir/elsewhere.output'" # as the collector's user could
mv work/*/evidence hidden
m 1 "no evidence" adopt ./prog
says err.txt 'no evidence that the version is faster' "no evidence"
jq -c '.verdict = "equal"' hidden >"${version%/output}/evidence"
m 1 "evidence of another verdict" adopt ./prog
jq -c '.output = "0123"' hidden >"${version%/output}/evidence"
m 1 "evidence of another version" adopt ./prog
mv hidden "${version%/output}/evidence"
chmod o+w work
m 1 "a directory of others" adopt ./prog
says err.txt 'other users can write there' "a directory of others"
chmod o-w work
cmp -s prog original || fail "adopted without evidence"
# The original crashes, too: one crash more is no reason to undo. The crashes of eight days ago do not count.
db "INSERT INTO crash(module, when_s, signal, nr) SELECT key, unixepoch() - 3600, 11, 3 FROM module WHERE path = '$dir/prog'
	UNION ALL SELECT key, unixepoch() - 8 * 86400, 11, 5 FROM module WHERE path = '$dir/prog'"
m 0 "a version of the worker" adopt ./prog
[ "$(job 'before_crashes, before_all')" = "3|0" ] ||
	fail "probation begins with other crashes, or other programs' samples: $(job 'before_crashes, before_all')"
cmp -s prog version || fail "a version of the worker: another file"
[ "$(job state) $(job layout)" = "adopted $(jq -r .output evidence)" ] || fail "a version of the worker: $(job 'state, layout')"
m 0 "undo a version of the worker" undo ./prog
cmp -s prog original || fail "undo has not put the original back"
rm etc/watch.d/by-worker.conf

# ---- the policy's rule, by the worker
w() {
	m "$1" "$2" watch --policy=etc "${@:3}"
}
w 0 "watch list, empty" list
says out.txt 'No program is watched' "watch list, empty"
w 0 "watch add" --mode=adopt add ./prog -- "$dir/prog" 1000 'two words' "it's"
says etc/watch.d/prog.conf "^program = $dir/prog$" "watch add"
says etc/watch.d/prog.conf '^mode = adopt$' "watch add"
"$BUILD/morph-worker" --check --config=etc >/dev/null || fail "morph-worker refuses the rule"
w 0 "watch list" --json list
json "watch list" ".rules[0] | .name == \"prog\" and .mode == \"adopt\" and .audit == \"command\" and .programs == [\"$dir/prog\"]"
w 2 "watch: nothing to find out with" --mode=adopt --name=other add ./prog
says err.txt 'a COMMAND that uses the program is needed' "watch: nothing to find out with"
w 2 "watch: no such user" --user=no-such-user --name=other add ./prog -- "$dir/prog"
[ ! -e etc/watch.d/other.conf ] || fail "watch: a wrong rule was written: $(cat etc/watch.d/other.conf)"
cp etc/watch.d/prog.conf before
w 2 "watch: a wrong rule of the same name" --user=no-such-user add ./prog -- "$dir/prog"
cmp etc/watch.d/prog.conf before || fail "watch: a wrong rule has replaced a right one"
w 2 "watch: two rules in one" --user=$'root\nmode = adopt' --name=other add ./prog -- "$dir/prog"
[ "$(ls etc/watch.d)" = prog.conf ] || fail "watch: left behind: $(ls etc/watch.d)"
w 0 "watch a pattern" --name=all add "$dir/bin/*"
w 2 "watch a share" add 2%
w 4 "watch the loader" add /lib64/ld-linux-x86-64.so.2
w 2 "watch nothing" add
w 2 "no such action" frob ./prog
w 2 "a name with a slash" --name=a/b add ./prog
printf 'program = %s/prog\n' "$dir" >etc/watch.d/mine.conf
w 2 "a rule of a person" --name=mine add ./prog
w 0 "watch rm by name" rm all
[ ! -e etc/watch.d/all.conf ] || fail "watch rm has not removed the rule"
w 1 "watch rm of a person's rule" rm mine
[ -e etc/watch.d/mine.conf ] || fail "watch rm has removed a person's rule"
rm etc/watch.d/mine.conf
w 0 "watch rm by program" rm ./prog
[ -z "$(ls etc/watch.d)" ] || fail "left in watch.d: $(ls etc/watch.d)"
w 1 "watch rm of nothing" rm ./prog

# ---- top, where there is no terminal, and on one
m 0 "top" top
says out.txt ' 70.59 %  .*prog ' "top"
m 0 "top as JSON" --json top
json "top as JSON" '.command == "top" and (.programs | length) >= 1'
if command -v script >/dev/null && command -v timeout >/dev/null; then
	rm -f typescript
	(awaits 'grep -aqs "Morph is not collecting" typescript'; printf q) | TERM=xterm timeout 600 script -qfec "stty rows 24 cols 80; $morph --db=db top --delay=1" typescript >/dev/null 2>&1
	got=$?
	[ $got = 0 ] || fail "top on a terminal: status $got"
	grep -aq "Morph is not collecting" typescript || fail "top on a terminal: $(head -c 300 typescript)"
else
	left_out="$left_out script"
fi

# ---- names that are chosen to harm: no control character reaches the terminal
sqlite3 db "UPDATE module SET path = '/evil/' || char(27) || '[31m' || char(10) || 'x' WHERE path LIKE '%/other/prog'"
for c in "" list top "explain ${build_id:0:12}" history; do
	# shellcheck disable=SC2086
	m 0 "a hostile name: $c" $c
	! LC_ALL=C grep -q "$(printf '\033')" out.txt || fail "morph $c prints an escape sequence"
	# shellcheck disable=SC2086
	m 0 "a hostile name: $c --json" --json $c
	jq -e . out.txt >/dev/null || fail "morph $c --json is no JSON"
done
finish
