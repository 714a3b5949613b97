#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: builders and hosts are killed at many moments, a minute
# Builds: an operator asks for one, a builder makes it, a host proves it and puts it in place. Builders are
# killed, work at the same time, and lose the server; hosts are killed, have another original, or a full disk.
. "$(dirname "$0")/lib-builds.sh"
builds_start

# ---- requests
request 2 "an option that names a file" prog --output=x
says err.txt '^morph-fleet request: --output=x: no option for a build$'
request 2 "a file behind an option" prog --only=@/etc/passwd
request 2 "no module"
request 3 "an unknown build-id" 0123456789
one_line "an unknown build-id"
request 1 "no program" prog.c
command_ends 3 "no builds" "$fleet" builds -d "$ADMIN"
request 0 "a file" prog
says out.txt "^$id: queued$"
request 0 "a build-id" "${id:0:8}"
says out.txt "^$id: is queued already$"
build_is queued "a request"

# ---- builders
build 1 "a host that is no builder" alpha
says err.txt 'permission denied for function take_build'
mkdir other
make_program other/prog -O1
command_ends 1 "another original" "$fleet" build -d "$(<maker.conn)" --once --originals=other
build_is failed "another original"
says out.txt "no original with the build-id $id and this code is here"
# Another builder may have it. One that does not have it is not asked again, and an operator's request begins anew.
command_ends 0 "another original, again" "$fleet" build -d "$(<maker.conn)" --once --originals=other
[ ! -s out.txt ] || fail "a builder takes a job again whose original it lacks: $(cat out.txt)"
build_is failed "another original, again"
request 0 "after a lack" prog
command_ends 1 "another original, asked again" "$fleet" build -d "$(<maker.conn)" --once --originals=other
build 0 "a builder that has the original" helper
build_is "done" "a builder that has the original"
fleet_sql "$ADMIN" "DELETE FROM fleet.build"
request 0 "both lack it" prog
for name in maker helper; do
	command_ends 1 "$name lacks it" "$fleet" build -d "$(<$name.conn)" --once --originals=other
done
command_ends 0 "both lack it" "$fleet" build -d "$(<helper.conn)" --once --originals=other
build_is failed "both lack it"
cp prog other/stolen
printf '\x90' | dd of=other/stolen bs=1 seek=$((0x$(nm prog | awk '/ hot$/ {print $1}') - 0x400000 + 5)) conv=notrunc status=none
request 0 "after a failure" prog
says out.txt "queued again, it was failed"
command_ends 1 "the build-id with other code" "$fleet" build -d "$(<maker.conn)" --once --originals=other
build_is failed "the build-id with other code"
request 0 "after a failure" prog
build 0 "a build" maker
build_is done "a build"
build 0 "no job is left" maker
command_ends 0 "builds" "$fleet" builds -d "$ADMIN" --json
json "builds" ".rows | length == 1 and (.[0] | .state == \"done\" and .build_id == \"$id\" and .release == 1 and .plan_bytes > 0 and .plan_bytes < 5000)"
echo "bytes of the plan: $(fleet_sql "$ADMIN" "SELECT octet_length(plan) FROM fleet.build")"
command_ends 0 "builds as text" "$fleet" builds -d "$(<maker.conn)"
says out.txt '^done '
request 0 "a build that is there" prog
says out.txt 'is done already'

# ---- what a host may
alpha=$(<alpha.conn)
for sql in "SELECT * FROM fleet.build" "UPDATE fleet.build SET plan = ''" "SELECT * FROM fleet.build_host" \
	"SELECT fleet.take_build('x')" "SELECT fleet.choose_build(1, '')" "SELECT fleet.request_build('\\x0011223344556677', '', 'x', true)" \
	"SELECT fleet.finish_build('', '', '', 1, '', '', '', '')" "SELECT fleet.enrol('alpha', true, true)"; do
	! fleet_sql "$alpha" "$sql" >out.txt 2>err.txt || fail "a host may: $sql"
done
version=$("$fleet" --version | cut -d' ' -f2)
module=$(fleet_sql "$ADMIN" "SELECT encode(module, 'hex') FROM fleet.build")
read_plan="SELECT fleet.read_plan('\\x$module', '', '$version', 1, 0, 10) IS NULL"
[ "$(fleet_sql "$alpha" "$read_plan")" = t ] || fail "a host reads a build that it has not asked for"
[ "$(fleet_sql "$alpha" "SELECT count(*) FROM fleet.wanted_builds(ARRAY['\\x$module'::bytea])")" = 1 ] || fail "no build is wanted"
[ "$(fleet_sql "$alpha" "$read_plan")" = f ] || fail "a host cannot read the build that it has asked for"
fleet_sql "$(<beta.conn)" "SELECT fleet.report_build('\\x$module', '', 'x', 1, 'installed', '', NULL)" -v VERBOSITY=sqlstate >out.txt 2>err.txt
says err.txt MF002 "a report about a module that the host did not ask for"
fleet_sql "$alpha" "SELECT fleet.report_build('\\x$module', '', 'x', 1, 'installed', '', '\\x0011')" -v VERBOSITY=sqlstate >out.txt 2>err.txt
says err.txt MF003 "a report with a hash that is none"
host_is alpha asked "a host that asks"

# Even if a function of the owner has a hole, a host changes no build, and no row of another host.
fleet_sql "$(<beta.conn)" "SELECT count(*) FROM fleet.wanted_builds(ARRAY['\\x$module'::bytea])" >/dev/null
fleet_sql "$ADMIN" "
	CREATE FUNCTION fleet.hole(sql text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS \$\$
	DECLARE nr bigint; BEGIN EXECUTE sql; GET DIAGNOSTICS nr = ROW_COUNT; RETURN nr; END \$\$;
	ALTER FUNCTION fleet.hole(text) OWNER TO morph_fleet_owner;
	GRANT EXECUTE ON FUNCTION fleet.hole(text) TO morph_fleet_host"
hole() {
	fleet_sql "$alpha" "SELECT fleet.hole(\$x\$$1\$x\$)" 2>err.txt
}
[ "$(hole "SELECT FROM fleet.build")" = 1 ] || fail "a hole does not even show the host's build: $(cat err.txt)"
[ "$(hole "UPDATE fleet.build SET plan = NULL")" = 0 ] || fail "a hole changes a build"
[ "$(hole "DELETE FROM fleet.build")" = 0 ] || fail "a hole deletes a build"
! hole "INSERT INTO fleet.build(module, options, version, state) VALUES (decode('0011223344556677', 'hex'), '', 'x', 'done')" || fail "a hole adds a build"
[ "$(hole "UPDATE fleet.build_host SET state = 'installed'")" = 1 ] || fail "a hole changes rows of other hosts"
host_is beta asked "a hole"
fleet_sql "$ADMIN" "DROP FUNCTION fleet.hole(text); UPDATE fleet.build_host SET state = 'asked'"

# ---- a host
cp prog alpha/prog
install 0 "a dry run" alpha --dry-run alpha/prog
says out.txt '^/.*/alpha/prog: proved: proved; nothing was changed$'
is_original alpha "a dry run"
install 0 "the build in a file" alpha -o output alpha/prog
is_original alpha "--output"
"$fleet" pull -d "$(<maker.conn)" -o local.db prog >/dev/null && "$BUILD/morph-optimize" --db=local.db -o local prog >/dev/null
cmp local output || fail "the build is not what morph-optimize makes of the same profile"
host_is alpha asked "--output"
install 0 "install" alpha --json alpha/prog
json "install" '.files | length == 1 and (.[0] | .action == "install" and .state == "installed" and .release == 1 and .same_bytes)'
is_output alpha "install"
host_is alpha installed "install"
got=$(sqlite3 alpha.db "SELECT group_concat(step || ':' || verdict, ' ') FROM (SELECT * FROM history ORDER BY key)")
[ "$got" = "ask:request write:fleet verify:done advise:fleet adopt:done" ] || fail "the history is '$got'"
[ "$(sqlite3 alpha.db 'SELECT state FROM job')" = adopted ] || fail "the job is not adopted"
install 0 "again" alpha alpha/prog
says out.txt 'installed: is in place'
install 0 "a build-id" alpha --dry-run "$id"
[ ! -s out.txt ] || says out.txt ': proved:' "a build-id"
command_ends 0 "the number of hosts" "$fleet" builds -d "$ADMIN" --json
json "the number of hosts" '.rows[0] | .nr_installed == 1 and .nr_other == 0'
# The worker looks after it as after a version of its own.
command_ends 0 "the worker" "$BUILD/morph-worker" --now --config=etc --db=alpha.db --state-dir=alpha/state --backup-dir=alpha/backup
[ "$(sqlite3 alpha.db 'SELECT state FROM job')" = adopted ] || fail "the worker does not know the version: $(cat err.txt)"
is_output alpha "after the worker"

# ---- other files on a host
# The plan fits a stripped copy as well, whose output has other bytes. It is this host's own.
strip -o beta/small prog
cp beta/small stripped
install 0 "a stripped original" beta beta/small
says out.txt "installed: proved, and in place; not the builder's bytes, which Morph $version made"
host_is beta installed "a stripped original"
[ "$(beta/small 12345)" = "$(./prog 12345)" ] || fail "a stripped original: it prints something else"
hash=$(sha256sum beta/small | cut -c1-64)
got=$(fleet_sql "$ADMIN" "SELECT encode(output_hash, 'hex') FROM fleet.build_host WHERE state = 'installed' AND output_hash <> (SELECT output_hash FROM fleet.build)")
[ "$got" = "$hash" ] || fail "a stripped original: the host reports the hash '$got', not $hash"
command_ends 0 "hosts with other bytes" "$fleet" builds -d "$ADMIN" --json
json "hosts with other bytes" '.rows[0] | .nr_installed == 2 and .nr_other == 1'
install 0 "a stripped original, again" beta --json beta/small
json "a stripped original, again" '.files[0] | .state == "installed" and (.reason | startswith("is in place; not the builder")) and (.same_bytes | not)'
"$BUILD/morph-optimize" restore --backup-dir=beta/backup beta/small >/dev/null && cmp beta/small stripped || fail "restore of a stripped original"
sqlite3 beta.db 'DELETE FROM job; DELETE FROM history'
cp other/stolen beta/prog
install 0 "an original with other code" beta beta/prog
[ ! -s out.txt ] || fail "an original with other code: $(cat out.txt)"
cp prog beta/prog
chmod u+s beta/prog
install 0 "a file that runs with other rights" beta beta/prog
says out.txt 'rejected: '
chmod u-s beta/prog
is_original beta "a file that runs with other rights"

# ---- the policy
install 0 "--all without a rule" beta --all
[ ! -s out.txt ] || fail "--all without a rule: $(cat out.txt)"
sed -i "s|$dir/prog|$dir/beta/prog|" two.out && "$BUILD/morph-stats" -d beta.db import two.out >/dev/null
. "$root/tests/e2e/manager/lib-speed.sh"
worker_by_speed worker
cat >speed <<END
#!/bin/sh
if cmp -s "$dir/beta/prog" "$dir/prog"; then echo speed 100; else echo speed 130; fi
END
chmod 755 speed
printf '%s\n' "program = $dir/beta/prog" "mode = adopt" "command = $dir/speed" "audit-time = 60" >etc/watch.d/prog.conf
install 0 "--all with a rule that audits" beta --all
says out.txt 'waiting: proved; the policy'
host_is beta waiting "a rule that audits"
is_original beta "before the audit"
install 0 "--all while it waits" beta --all
says out.txt 'waiting: waits for'
command_ends 0 "the worker" worker/morph-worker --now --config=etc --db=beta.db --state-dir=beta/state --backup-dir=beta/backup
is_output beta "after the audit"
install 0 "--all after the audit" beta --all
says out.txt 'installed: is in place'
host_is beta installed "after the audit"
rm etc/watch.d/prog.conf

# ---- a newer profile: the same build once more
for _ in 1 2 3; do "$BUILD/morph-stats" -d beta.db import two.out >/dev/null; done
callgrind_counts prog main 90000 >three.out
"$BUILD/morph-stats" -d beta.db import three.out >/dev/null
send_store beta
request 0 "again" --again prog
says out.txt 'queued again, it was done'
install 0 "while it is queued" alpha alpha/prog
[ ! -s out.txt ] || fail "a build that is not made is wanted: $(cat out.txt)"
build 0 "again" maker
install 0 "the new release in a file" alpha -o output2 alpha/prog
install 0 "the new release" alpha --json alpha/prog
json "the new release" '.files[0] | .state == "installed" and .release == 2'
is_output alpha "the new release" output2

# ---- withdrawn
fleet_sql "$ADMIN" "UPDATE fleet.build SET state = 'withdrawn'"
install 0 "withdrawn" alpha --json alpha/prog
json "withdrawn" '.files[0] | .action == "undo" and .state == "undone"'
is_original alpha "withdrawn"
host_is alpha undone "withdrawn"
[ "$(sqlite3 alpha.db 'SELECT state FROM job')" = undone ] || fail "the job is not undone"
install 0 "withdrawn, again" alpha alpha/prog
[ ! -s out.txt ] || fail "withdrawn, again: $(cat out.txt)"
fleet_sql "$ADMIN" "UPDATE fleet.build SET state = 'done'"
layout=$(sqlite3 alpha.db "SELECT layout FROM history WHERE step = 'write' ORDER BY key DESC LIMIT 1")
[ -n "$layout" ] || fail "the history has no layout"

# ---- a hostile server, or builder: what it may choose is a plan
# store_plan FILE [HASH]: an attacker's row
store_plan() {
	psql -X -q -v ON_ERROR_STOP=1 -d "$ADMIN" <<SQL || fail "the build was not stored"
UPDATE fleet.build SET release = release + 1, output_hash = '\x${2:-$(sha256sum output | cut -c1-64)}',
	plan = '\x$(od -An -v -tx1 "$1" | tr -d ' \n')';
SQL
}
# no_plan WHAT PATTERN FILE: the host refuses it with one message
no_plan() {
	store_plan "$3"
	install 1 "$1" alpha alpha/prog
	says out.txt "failed: .*$2" "$1"
	[ "$(wc -l <out.txt)" = 1 ] || fail "$1: more than one line: $(cat out.txt)"
	is_original alpha "$1"
	host_is alpha failed "$1"
}
"$BUILD/morph-optimize" --db=local.db --save-plan=good.plan -o local prog >/dev/null || fail "no plan"
"$BUILD/morph-optimize" --all --save-plan=other.plan -o other/out other/prog >/dev/null || fail "no plan of another program"
head -c -3 good.plan >cut.plan
{ cat good.plan; echo; } >longer.plan
{ head -c 50 good.plan; head -c 100000 /dev/urandom; } >noise.plan
no_plan "the plan of another program" 'is the plan of another file' other.plan
no_plan "a program instead of a plan" 'is no plan' output
no_plan "a plan that is cut off" 'is cut off' cut.plan
no_plan "a plan with more behind it" 'too long' longer.plan
no_plan "noise" '' noise.plan
fleet_sql "$ADMIN" "UPDATE fleet.build SET plan = convert_to(repeat('x', 70000000), 'UTF8')"
install 1 "a giant plan" alpha alpha/prog
says err.txt 'the server gives a damaged build'
one_line "a giant plan"
fleet_sql "$ADMIN" "UPDATE fleet.build SET plan = ''"
install 1 "an empty plan" alpha alpha/prog
one_line "an empty plan"
is_original alpha "an empty plan"
# Another hash, and an older plan: the output is a layout of this host's own, and the server hears that it is another one.
store_plan good.plan "$(printf '%064d' 0)"
install 0 "another hash" alpha alpha/prog
says out.txt "installed: .*; not the builder's bytes"
[ "$(alpha/prog 12345)" = "$(./prog 12345)" ] || fail "another hash: it prints something else"
install 0 "another hash, again" alpha alpha/prog
says out.txt "installed: is in place; not the builder's bytes"
"$BUILD/morph-optimize" restore --backup-dir=alpha/backup alpha/prog >/dev/null || fail "restore"
"$BUILD/morph-optimize" --all --save-plan=older.plan -o older prog >/dev/null || fail "no older plan"
store_plan older.plan
install 0 "an older plan" alpha -o replayed alpha/prog
cmp older replayed || fail "an older plan gives another output than its own"
says out.txt "not the builder's bytes"
# Names that the server chooses.
store_plan good.plan
fleet_sql "$ADMIN" "UPDATE fleet.build SET version = E'1\033[31m\nx', options = E'--all\033]0;x\007'"
install 0 "terminal escapes" alpha --dry-run alpha/prog
! grep -q $'\033\|\007' out.txt err.txt || fail "terminal escapes are printed"
[ "$(wc -l <out.txt)" = 1 ] || fail "terminal escapes: $(cat out.txt)"
fleet_sql "$ADMIN" "UPDATE fleet.build SET version = '$version', options = ''"
is_original alpha "all of these"
cp local output
store_plan good.plan
finish_installs() { install 0 "$1" alpha alpha/prog && is_output alpha "$1"; }

# ---- a host that is killed at any moment has the original or the build, whole
nr_original=0 nr_output=0
began=$(date +%s%N)
finish_installs "before kills"
took=$((($(date +%s%N) - began) / 1000000))
"$BUILD/morph-optimize" restore --backup-dir=alpha/backup alpha/prog >/dev/null || fail "restore"
for i in {1..25}; do
	"$fleet" install -d "$alpha" --db=alpha.db --policy=etc --backup-dir="$dir/alpha/backup" --state-dir="$dir/alpha/state" \
		alpha/prog >/dev/null 2>&1 &
	pid=$!
	wait_ms=$((RANDOM % (took + took / 4)))
	sleep "$((wait_ms / 1000)).$(printf '%03d' $((wait_ms % 1000)))"
	{ kill -9 $pid; wait $pid; } 2>/dev/null
	if cmp -s prog alpha/prog; then
		nr_original=$((nr_original + 1))
	elif cmp -s output alpha/prog; then
		nr_output=$((nr_output + 1))
		"$BUILD/morph-optimize" restore --backup-dir=alpha/backup alpha/prog >/dev/null 2>&1
	else
		# morph-optimize, which the killed program started, may still be at work: it replaces by one rename.
		fail "kill $i: neither the original nor the build is in place"
	fi
done
echo "25 kills: $nr_original times the original, $nr_output times the build"
sleep 1
finish_installs "after kills"
left=$(find alpha/backup/outputs -name '*.fleet*')
[ -z "$left" ] || fail "left behind: $left"
"$BUILD/morph-optimize" restore --backup-dir=alpha/backup alpha/prog >/dev/null || fail "restore"

# ---- no server
fleet_crash
install 75 "no server" alpha alpha/prog
one_line "no server"
build 75 "a builder without a server" maker
fleet_restart

# ---- builders that are killed, and two at once. slow DELAY: a copy of Morph whose morph-optimize waits first
mkdir slow
cp "$fleet" slow/morph-fleet
slow() {
	printf '#!/bin/sh\necho $$ >"%s/slow.pid"\nsleep %s\nexec "%s" "$@"\n' "$dir" "$1" "$BUILD/morph-optimize" >slow/morph-optimize
	chmod 755 slow/morph-optimize
	rm -f slow.pid
}
slow_build() {
	slow/morph-fleet build -d "$(<maker.conn)" --once --originals=originals --give-up="$1" >slow.out 2>slow.err &
	pid=$!
	awaits '[ -s slow.pid ]' || fail "a slow builder: $(<slow.err)"
}
# lease_ends: as if its time were over
lease_ends() {
	fleet_sql "$ADMIN" "UPDATE fleet.build SET lease_until = now() - interval '1 s' WHERE state = 'taken'"
}
request 0 "a build by a builder that is killed" --again prog
slow 60
slow_build 0
build_is taken "a slow builder"
build 0 "a job with a lease" helper
build_is taken "a job with a lease"
{ kill -9 $pid; wait $pid; } 2>/dev/null
lease_ends
# It may be a zombie that nobody has collected yet.
state=$(<slow.pid)
awaits '[ ! -e "/proc/$state" ] || grep -q "^State:.*Z" "/proc/$state/status" 2>/dev/null' ||
	fail "the killed builder's morph-optimize runs on"
build 0 "a job whose builder was killed" helper
build_is "done" "a job whose builder was killed"
[ "$(fleet_sql "$ADMIN" "SELECT nr_attempts || ' ' || (lease_until IS NULL) FROM fleet.build")" = "0 true" ] || fail "the lease is left"

request 0 "a builder that is too slow" --again prog
slow 6
slow_build 0
lease_ends
build 0 "the job of a builder that is too slow" helper
release=$(fleet_sql "$ADMIN" 'SELECT release FROM fleet.build')
wait $pid || fail "the slow builder fails: $(cat slow.err)"
says slow.out "is not this builder's any more"
[ "$(fleet_sql "$ADMIN" 'SELECT release FROM fleet.build')" = "$release" ] || fail "the slow builder's result was stored"

request 0 "two builders" --again prog
request 0 "two builders" prog --layout=blocks=original
# A job that another transaction is taking just now is passed over.
psql -X -q -A -t -d "$(<maker.conn)" >first.txt <<SQL &
BEGIN;
SELECT options FROM fleet.take_build('$version');
SELECT FROM pg_sleep(3);
ROLLBACK;
SQL
for _ in {1..100}; do [ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")" = 1 ] && break; done
got=$(timeout 2 psql -X -q -A -t -d "$(<helper.conn)" -c "BEGIN" -c "SELECT options FROM fleet.take_build('$version')" -c "ROLLBACK")
wait
[ "$got" = "--layout=blocks=original" ] && [ "$(head -n 1 first.txt)" = "" ] || fail "two at once take '$got' and '$(<first.txt)'"
slow 2
slow_build 0
build 0 "the second builder" helper
wait $pid || fail "the first builder: $(cat slow.err)"
got=$(fleet_sql "$ADMIN" "SELECT count(DISTINCT builder) || ' ' || count(*) FROM fleet.build WHERE state = 'done'")
[ "$got" = "2 2" ] || fail "two builders: $got"

# ---- the server is gone while a builder works
request 0 "a server that goes away" --again prog
slow 3
slow_build 60
fleet_crash
fleet_restart
wait $pid || fail "the builder gave up: $(cat slow.err)"
build_is "done" "a server that goes away"

# ---- a builder that is told to stop gives its job back
request 0 "a builder that is stopped" --again prog
slow 60
slow_build 0
kill $pid
wait $pid 2>/dev/null
build_is queued "a builder that is stopped"
build 0 "the job of a builder that was stopped" helper
build_is "done" "the job of a builder that was stopped"

# ---- three builders that die over a job are enough
fleet_sql "$ADMIN" "UPDATE fleet.build SET state = 'taken', nr_attempts = 3, lease_until = now() - interval '1 s' WHERE options = ''"
build 0 "a job that kills builders" helper
build_is failed "a job that kills builders"
request 0 "no profile" prog --min-samples=1000000000
build 1 "no profile" helper
build_is failed "no profile" --min-samples=1000000000
fleet_sql "$ADMIN" "UPDATE fleet.build SET state = 'done' WHERE options = ''"

# ---- a full disk
mkdir full
if mount -t tmpfs -o size=24k,mode=700 none full 2>/dev/null; then
	"$fleet" install -d "$alpha" --db=alpha.db --policy=etc --backup-dir=full --state-dir=alpha/state alpha/prog >out.txt 2>err.txt
	got=$?
	[ $got = 1 ] || fail "a full disk: status $got"
	cat out.txt err.txt >both.txt
	says both.txt 'No space left' "a full disk"
	is_original alpha "a full disk"
	[ -z "$(find full -type f)" ] || fail "a full disk: files are left: $(find full -type f)"
	umount full
else
	left_out="$left_out a full disk (no tmpfs here)"
fi

# ---- a banned builder
"$fleet" ban -d "$ADMIN" maker
build 1 "a banned builder" maker
command_ends 0 "check" "$fleet" check -d "$ADMIN"
[ ! -s out.txt ] || fail "check: $(cat out.txt)"
finish
