#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: roll-outs to hosts in many states
# Roll-outs: which hosts get a build, what evidence decides and what a lying host can do, steps that are repeated or
# run at once, what an operator decides, and a host that undoes a build when the server is gone.
. "$(dirname "$0")/lib-fleet.sh"
need jq gcc objdump sqlite3
fleet_start
"$fleet" init >/dev/null || { echo "FAIL: init"; exit 1; }
fleet_host alpha --reader
fleet_host beta
today=$(($(date +%s) / 86400))
m=aa00000000000000bbbb
# sql SQL: as the superuser
sql() {
	fleet_sql "$ADMIN" "$1"
}
# build MODULE VERSION: a build that a builder has made
build() {
	sql "INSERT INTO fleet.build(module, options, version, state, release) VALUES ('\\x$1', '', '$2', 'done', 1)"
}
# canary COLUMN [VERSION]: of the roll-out
canary() {
	sql "SELECT $1 FROM fleet.list_canaries() WHERE version = '${2:-v1}' AND module = '\\x$m'"
}
# is COLUMN WANT WHAT [VERSION]
is() {
	local got
	got=$(canary "$1" "${4:-v1}")
	[ "$got" = "$2" ] || fail "$3: $1 is '$got', not '$2'"
}
# step WHAT: takes the steps that can be taken
step() {
	command_ends 0 "$1" "$fleet" canary step
}
# chosen [VERSION]: the hosts that may have the build
chosen() {
	sql "SELECT h.name FROM fleet.host h, fleet.canary c WHERE c.module = '\\x$m' AND c.version = '${1:-v1}'
		AND fleet.host_hash(c.module, c.options, c.version, h.id) <= c.cutoff ORDER BY 1"
}
# say_all SQL-CONDITION LOG-FASTER LOG-SLOWER: evidence of chosen hosts, as they would send it
say_all() {
	sql "INSERT INTO fleet.audit(module, options, version, host, release, seq, day, pairs, log_faster, log_slower, ratio,
			lowest, highest, state)
		SELECT c.module, '', c.version, h.id, 1, 1, $today, 20, $2, $3, 1.03, 1.01, 1.05, 'kept'
		FROM fleet.canary c, fleet.host h WHERE c.module = '\\x$m' AND c.version = '${4:-v1}' AND $1
			AND fleet.host_hash(c.module, c.options, c.version, h.id) <= c.cutoff
		ON CONFLICT (module, options, version, host, epoch) DO UPDATE SET log_faster = excluded.log_faster,
			log_slower = excluded.log_slower"
}

# ---- which hosts: 1 % of 600 are 6; the hosts of a stage stay in the next one
sql "INSERT INTO fleet.module(module, kind) VALUES ('\\x$m', 0);
	INSERT INTO fleet.host(name) SELECT 'sim' || i FROM generate_series(1, 600) i;
	INSERT INTO fleet.module_host(module, host, text_size) SELECT '\\x$m', id, 1000 FROM fleet.host"
command_ends 0 "no build" "$fleet" canary --json
json "no build" '.rows == []'
build $m v1
command_ends 0 "four steps at once" bash -c 'for _ in 1 2 3 4; do "$1" canary step >/dev/null & pids="$pids $!"; done
	for pid in $pids; do wait $pid || exit 1; done' - "$fleet"
[ "$(sql 'SELECT count(*) FROM fleet.canary_history')" = 1 ] || fail "four steps at once start it more than once"
is state running "the first stage"
is "stage || ' ' || nr_stages" "1 3" "the first stage"
chosen >stage1
[ "$(wc -l <stage1)" -ge 3 ] && [ "$(wc -l <stage1)" -le 16 ] || fail "1 % of 602 hosts are $(wc -l <stage1)"
chosen >again && cmp stage1 again || fail "the chosen hosts change"
sql "SELECT fleet.host_hash('\\x$m', '', 'v2', h.id) < 0.01 FROM fleet.host h ORDER BY h.name" >other
sql "SELECT fleet.host_hash('\\x$m', '', 'v1', h.id) < 0.01 FROM fleet.host h ORDER BY h.name" | cmp -s - other &&
	fail "each build has the same hosts"
got=$(sql "SELECT round(avg(fleet.host_hash('\\xbb', 'o', 'v', i))::numeric, 2), count(*) FILTER (WHERE fleet.host_hash('\\xbb', 'o', 'v', i) <= 0.1)
	BETWEEN 900 AND 1100 FROM generate_series(1, 10000) i")
[ "$got" = "0.50|t" ] || fail "hashes are not uniform: $got"
# answers follow the hash
for host in alpha beta; do
	got=$(fleet_sql "$(<$host.conn)" "SELECT answer FROM fleet.canary_offer('\\x$m', '', 'v1', 1)")
	want=no
	! grep -qx $host stage1 || want=lease
	[ "$got" = $want ] || fail "$host: the answer is $got, not $want"
done

# ---- one host alone decides nothing, whatever it says
sql "UPDATE fleet.canary SET policy = policy || '{\"soak_s\": 0}'"
liar=$(head -n 1 stage1)
for lie in "1000000, -1000000" "-1000000, 1000000"; do
	say_all "h.name = '$liar'" ${lie/,/}
	step "a liar"
	is "state || ' ' || stage" "running 1" "one host says $lie"
done
got=$(sql "SELECT round(fleet.product_e(ARRAY[0, 0, 1e6, 0], 0.01, 20)::numeric, 6)")
[ "$got" = 0.000000 ] || fail "the product with one liar is $got"
# Without doubt, one host's factor is capped all the same; and from below it is a quarter.
got=$(sql "SELECT round(exp(fleet.product_e(ARRAY[0, 1e6], 0, 20))::numeric, 6), round(exp(fleet.product_e(ARRAY[0, -1e6], 0, 20))::numeric, 6)")
[ "$got" = "20.000000|0.250000" ] || fail "factors: $got"
# The mean factor of an e-value is not above 1: 200 with a chance of 1 / 200, else 0.
got=$(sql "SELECT (exp(fleet.host_factor(ln(200), 1e9)) / 200 + exp(fleet.host_factor(-700, 1e9)) * 199 / 200)::numeric(8, 6)")
[ "$got" = 1.000000 ] || fail "the factor of an e-value of 1 is $got"

# ---- evidence of several hosts; a step that is repeated changes nothing
say_all true 6 -6
# Hosts that made other bytes by the plan, with another version of Morph, say nothing about the builder's output. What
# they refuse, and what prints something else, counts.
nr=$(canary nr_hosts)
sql "UPDATE fleet.build SET output_hash = sha256('made')
	WHERE module = '\\x$m'; UPDATE fleet.audit SET output_hash = sha256('other'); UPDATE fleet.audit SET output_hash = sha256('made') WHERE host = (SELECT min(host) FROM fleet.audit)"
is "nr_hosts || ' ' || nr_audits || ' ' || (log_faster < 5)" "1 1 true" "hosts with other bytes"
step "hosts with other bytes"
is "state || ' ' || stage" "running 1" "hosts with other bytes"
sql "UPDATE fleet.audit SET state = 'differs' WHERE output_hash = sha256('other')"
is nr_alarms $((nr - 1)) "hosts with other bytes that print something else"
sql "UPDATE fleet.audit SET state = 'kept', output_hash = NULL"
is nr_hosts "$nr" "hosts that did not say what they made"
step "faster"
is "state || ' ' || stage" "running 2" "faster"
is cause faster "faster"
chosen >stage2
comm -23 stage1 stage2 | grep -q . && fail "a host of stage 1 is not in stage 2"
[ "$(wc -l <stage2)" -gt 30 ] && [ "$(wc -l <stage2)" -lt 100 ] || fail "10 % of 602 hosts are $(wc -l <stage2)"
sql "UPDATE fleet.canary SET policy = policy || '{\"soak_s\": 1000}'"
before=$(sql 'SELECT count(*) FROM fleet.canary_history')
step "again"
step "and again"
[ "$(sql 'SELECT count(*) FROM fleet.canary_history')" = "$before" ] || fail "a step that is repeated changes the state"
is "state || ' ' || stage" "running 2" "a stage lasts a while"

# ---- slower: withdrawn, and it stays so
say_all true -6 6
step "slower"
is state withdrawn "slower"
is cause 'slower, or it crashes' "slower"
[ "$(sql "SELECT state FROM fleet.build WHERE version = 'v1'")" = withdrawn ] || fail "the build is not withdrawn"
[ "$(fleet_sql "$(<alpha.conn)" "SELECT answer FROM fleet.canary_offer('\\x$m', '', 'v1', 1)")" = withdrawn ] || fail "the answer is not withdrawn"
say_all true 600 -600
step "too late"
is state withdrawn "a withdrawn build stays withdrawn"
command_ends 1 "promote a withdrawn one" "$fleet" canary promote bbbb
says err.txt 'is withdrawn' "promote a withdrawn one"
command_ends 0 "withdraw again" "$fleet" canary withdraw bbbb
says err.txt 'it is so already' "withdraw again"

# ---- an operator, who is no superuser
sql "CREATE ROLE op LOGIN IN ROLE morph_fleet_operator"
export MORPH_FLEET="host=$dir/pg port=$fleet_port user=op dbname=fleet"
build $m v2
fleet_sql "$MORPH_FLEET" "UPDATE fleet.canary_policy SET automatic = false" || fail "an operator may not change the policy"
step "not automatic"
is state '' "not automatic" v2
command_ends 0 "start" "$fleet" canary start bbbb
is state running "start" v2
command_ends 0 "start again" "$fleet" canary start --for=v2 bbbb
[ "$(sql "SELECT count(*) FROM fleet.canary_history WHERE version = 'v2'")" = 1 ] || fail "started twice"
build $m v3
command_ends 1 "two at once" "$fleet" canary start --for=v3 bbbb
says err.txt 'another build of the module is being rolled out' "two at once"
command_ends 0 "hold" "$fleet" canary hold bbbb
is state held "hold" v2
sql "UPDATE fleet.canary SET stage_at = now() - interval '1 year' WHERE version = 'v2'"
step "held for a year"
is state held "held for a year" v2
command_ends 0 "promote" "$fleet" canary promote bbbb
is "state || ' ' || stage" "running 2" "promote" v2
command_ends 0 "promote" "$fleet" canary promote bbbb
command_ends 0 "release" "$fleet" canary promote bbbb
is "state || ' ' || stage" "released 3" "released" v2
[ "$(fleet_sql "$(<alpha.conn)" "SELECT answer FROM fleet.canary_offer('\\x$m', '', 'v2', 1)")" = keep ] || fail "a released build is not kept"
[ "$(fleet_sql "$(<alpha.conn)" "SELECT answer FROM fleet.canary_offer('\\x$m', '', 'v2', 2)")" = withdrawn ] || fail "another release is kept"
# Two operators: the second one looked before the first one acted.
got=$(sql "SELECT fleet.set_canary('\\x$m', '', 'v2', 1, 'withdraw')" 2>&1)
[[ $got == *"changed in the meantime"* ]] || fail "two operators: $got"
say_all true -9 9 v2
step "a released build is slower"
is state withdrawn "a released build is slower" v2
[ "$(sql "SELECT count(*) FILTER (WHERE who = 'op') > 4 FROM fleet.canary_history WHERE version = 'v2'")" = t ] || fail "the history does not name the operator"
export MORPH_FLEET=$ADMIN
sql "UPDATE fleet.canary_policy SET automatic = true"

# ---- the time of a stage is over: nothing was shown, so nothing stays
step "the next build"
is state running "the next build" v3
sql "UPDATE fleet.canary SET stage_at = now() - interval '8 days' WHERE version = 'v3'"
step "the time is over"
is state withdrawn "the time is over" v3
is cause 'undecided: the time of the stage is over' "the time is over" v3

# ---- alarms and crashes
build $m v4
step "v4"
say_all true 0 0 v4
sql "UPDATE fleet.audit SET state = 'differs' WHERE version = 'v4' AND host = (SELECT min(host) FROM fleet.audit WHERE version = 'v4')"
step "one alarm"
is state running "one alarm" v4
# One host that may lie says all that it can say.
sql "INSERT INTO fleet.build_host(module, host, options, version, release, state)
	SELECT module, host, options, version, release, 'refused' FROM fleet.audit WHERE version = 'v4' AND state = 'differs'
	ON CONFLICT (module, host) DO UPDATE SET options = excluded.options, version = excluded.version,
		release = excluded.release, state = excluded.state"
step "one host gives two alarms"
is state running "one host gives two alarms" v4
is nr_alarms 1 "one host gives two alarms" v4
sql "UPDATE fleet.audit SET state = 'differs' WHERE version = 'v4'"
step "alarms"
is "state || ': ' || cause" 'withdrawn: hosts refused it, or it printed something else' "alarms" v4
# A crash soon after the change is evidence, one in a week is none; as the reference, the binomial likelihood ratio.
got=$(sql "SELECT round(fleet.crash_e(0, 604800, 1, 3600)::numeric, 3), fleet.crash_e(0, 604800, 0, 604800) = 0,
	fleet.crash_e(7, 604800, 7, 604800) < 0, fleet.crash_e(0, 0, 5, 0) = 0")
want=$(awk 'BEGIN { p = 3600 / 608400; q = 36000 / (604800 + 36000); printf "%.3f|t|t|t", log(q / p) }')
[ "$got" = "$want" ] || fail "crashes: $got, not $want"
got=$(sql "SELECT fleet.probation_e(1e6, 1e6, 1e6, 1e6, 0.05, 1) < 0, fleet.probation_e(1e6, 1e6, 1.2e6, 1e6, 0.05, 1) > 20,
	fleet.probation_e(1e6, 1e6, 1.2e6, 1e6, 0.05, -1) < 0, fleet.probation_e(999, 1e6, 1e6, 1e6, 0.05, 1) = 0")
[ "$got" = "t|t|t|t" ] || fail "probations: $got"

# ---- what a host sends
build $m v5
sql "UPDATE fleet.canary_policy SET shares = '{1}'"
step "v5"
# push SEQ FACTS [STATE] [RELEASE]
push() {
	fleet_sql "$(<alpha.conn)" "SELECT fleet.push_audit('\\x$m', '', 'v5', ${4:-1}, $1, '${3:-adopted}', '$2')" -v VERBOSITY=sqlstate 2>&1
}
facts='{"pairs": 20, "log_faster": 5.5, "log_slower": -7, "ratio": 1.03, "lowest": 1.01, "highest": 1.05}'
[ "$(push 5 "$facts")" = t ] || fail "a first state: $(push 5 "$facts")"
[ "$(push 5 "$facts")" = f ] || fail "the same state again"
[ "$(push 4 "${facts/5.5/9}")" = f ] || fail "an older state"
[ "$(sql "SELECT count(*), max(log_faster) FROM fleet.audit WHERE version = 'v5'")" = "1|5.5" ] || fail "an older state counts"
[ "$(push 6 "${facts/5.5/6.5}")" = t ] || fail "a newer state"
[ "$(sql "SELECT count(*), max(log_faster) FROM fleet.audit WHERE version = 'v5'")" = "1|6.5" ] || fail "a newer state does not count"
[ "$(push 7 "$facts" adopted 2)" = f ] || fail "another release"
for bad in '{"pairs": "20"}' '{"pairs": -1}' '{"log_faster": 1e7}' '{"log_slower": [1]}' '{"ratio": 0}' '{"pairs": 1e400}' \
	'{"crashes": true}' "{\"x\": \"$(printf '%5000d' 0)\"}"; do
	[[ $(push 8 "$bad") == *MF003* ]] || fail "${bad:0:60}: $(push 8 "$bad")"
done
[[ $(push 8 "$facts" 'no state') == *MF003* ]] || fail "a state that is none"
[[ $(fleet_sql "$(<alpha.conn)" "SELECT fleet.push_audit('\\x$m', '', 'v99', 1, 1, 'adopted', '{}')" -v VERBOSITY=sqlstate 2>&1) == *MF002* ]] ||
	fail "a build that is not rolled out"
for attack in "SELECT fleet.step_canaries()" "SELECT fleet.set_canary('\\x$m', '', 'v5', NULL, 'promote')" "SELECT * FROM fleet.audit WHERE false" \
	"UPDATE fleet.canary SET state = 'released'" "SELECT fleet.start_canary('\\x$m', '', 'v5')" "DELETE FROM fleet.canary_history"; do
	got=$(fleet_sql "$(<beta.conn)" "$attack" 2>&1) && fail "a host may: $attack"
	[[ $got == *"permission denied"* ]] || fail "$attack: $got"
done
command_ends 0 "check after all this" "$fleet" check
[ ! -s out.txt ] || fail "check: $(cat out.txt)"
command_ends 0 "a reader's list" "$fleet" canary -d "$(<alpha.conn)" --json
json "a reader's list" '[.rows[] | select(.version == "v5")] | length == 1 and .[0].nr_audits == 1 and .[0].state == "running"'

# ---- a host with a build in place
hot_program original
cp original prog
callgrind_counts prog hot 50000 >counts.out
"$BUILD/morph-stats" -d host.db import counts.out >/dev/null || exit 1
mkdir -m 755 state backup
unset MORPH_FLEET
alpha=$(<alpha.conn)
command_ends 0 "push" "$fleet" push -d "$alpha" --db=host.db --machine-id=/etc/hostname --give-up=0
m=$(sql "SELECT encode(module, 'hex') FROM fleet.module WHERE length(module) > 20")
# in_place VERSION: the build is rolled out, and in place on this host
in_place() {
	cp original prog
	build "$m" "$1"
	command_ends 0 "roll out $1" "$fleet" canary step -d "$ADMIN"
	command_ends 0 "optimize" "$BUILD/morph" -d host.db --backup-dir=backup optimize ./prog
	command_ends 0 "adopt" "$BUILD/morph" -d host.db --backup-dir=backup adopt ./prog
	cmp -s prog original && fail "$1: not adopted"
	jq -n --arg path "$dir/prog" --arg key "$m" --arg version "$1" --argjson now "$(date +%s)" \
		'{leases: [{path: $path, module: $key, options: "", version: $version, release: 1, layout: "", granted_s: $now,
		expires_s: ($now + 100)}]}' >state/fleet-leases.json
}
renew() {
	command_ends "$1" "$2" "$fleet" renew -d "$alpha" --db=host.db --state-dir=state --backup-dir=backup "${@:3}"
}
lease() {
	jq "$1" state/fleet-leases.json
}
in_place w1
renew 0 "a lease" --json
json "a lease" '.rows | length == 1 and .[0].result == "leased"'
[ "$(lease '.leases[0].expires_s - .leases[0].granted_s')" = 172800 ] || fail "the lease lasts $(lease .leases)"
got=$(sql "SELECT state, release FROM fleet.audit WHERE version = 'w1'")
[ "$got" = "adopted|1" ] || fail "the server knows of the host: $got"
renew 0 "a lease again"
says out.txt 'prog: leased until' "a lease again"

# The server is killed. Until the lease ends, the build stays; then the host undoes it.
fleet_crash
renew 75 "without the server"
says out.txt 'prog: waits until' "without the server"
cmp -s prog original && fail "undone before the lease is over"
jq '.leases[0].expires_s = now - 1 | .leases[0].expires_s |= floor' state/fleet-leases.json >new && mv new state/fleet-leases.json
renew 75 "the lease is over"
says out.txt 'prog: undone: its lease is over, and no server renews it' "the lease is over"
cmp prog original || fail "the original is not back"
[ "$(./prog 7)" = "$(./original 7)" ] || fail "the original does not run"
[ "$(lease '.leases | length')" = 0 ] || fail "the lease stays"
[ "$(sqlite3 host.db 'SELECT count(*) FROM history WHERE step = "restore"')" = 1 ] || fail "the history does not tell"
renew 75 "nothing is left"
[ ! -s out.txt ] || fail "nothing is left: $(cat out.txt)"
fleet_restart

# A clock that was set back tells nothing; the file is checked.
in_place w2
fleet_crash
jq '.leases[0].granted_s = 4000000000 | .leases[0].expires_s = 4000000100' state/fleet-leases.json >new && mv new state/fleet-leases.json
renew 75 "a clock that was set back"
cmp prog original || fail "a clock that was set back: the build stays"
for damage in '{' '{"leases": 1}' '{"leases": [{"path": "x"}]}' '{"leases": [{"path": "/x", "module": "zz", "options": "", "version": "", "release": 1, "layout": "", "granted_s": 1, "expires_s": 2}]}'; do
	echo "$damage" >state/fleet-leases.json
	renew 1 "a damaged file"
	says err.txt 'fleet-leases.json: damaged' "$damage"
done
fleet_restart

# A build that is withdrawn is undone, and the server hears of it.
sql "SELECT fleet.set_canary(module, options, version, NULL, 'withdraw') FROM fleet.canary WHERE version IN ('w1', 'w2')" >/dev/null
in_place w3
renew 0 "a lease"
sql "SELECT fleet.set_canary('\\x$m', '', 'w3', NULL, 'withdraw')" >/dev/null
renew 0 "withdrawn" --json
json "withdrawn" '.rows[0].result == "undone" and (.rows[0].reason | test("withdrew it: an operator"))'
cmp prog original || fail "withdrawn: the build stays"

# A released build has no lease, and stays without the server.
in_place w4
sql "SELECT fleet.set_canary('\\x$m', '', 'w4', NULL, 'promote')" >/dev/null
renew 0 "released"
says out.txt 'prog: released' "released"
fleet_crash
renew 75 "released, without the server"
cmp -s prog original && fail "a released build is undone"
fleet_restart

# This host undoes a build by itself: the server hears of it, and the lease goes.
command_ends 0 "undo" "$BUILD/morph" -d host.db --backup-dir=backup undo ./prog
renew 0 "undone here"
says out.txt 'prog: ended: undone' "undone here"
[ "$(sql "SELECT state FROM fleet.audit WHERE version = 'w4'")" = undone ] || fail "the server does not hear of it"
[ "$(lease '.leases | length')" = 0 ] || fail "undone here: the lease stays"
renew 0 "the list" --list
chmod 777 state
renew 1 "a directory that others can write"
says err.txt 'others can write there' "a directory that others can write"

# ---- the unit: its command takes the steps, as the operator whom a file names
m=bb00000000000000cccc
sql "UPDATE fleet.canary_policy SET automatic = true; INSERT INTO fleet.module(module, kind) VALUES ('\\x$m', 0)"
build $m v1
echo "database = host=$dir/pg port=$fleet_port user=op dbname=fleet" >operator.conf
# unit: the command of the service
unit() {
	local command
	command=$(sed -n 's|^ExecStart=@BINDIR@/morph-fleet ||p' "$root/daemon/fleet/morph-fleet-canary.service")
	# shellcheck disable=SC2086 # Several words.
	env -u MORPH_FLEET "$fleet" ${command//@SYSCONFDIR@\/morph\/fleet-operator.conf/operator.conf}
}
command_ends 0 "the unit" unit
is state running "the unit"
[ "$(sql "SELECT who FROM fleet.canary_history WHERE module = '\\x$m'")" = op ] || fail "the unit's step is not the operator's"
sed -i 's/port=[0-9]*/port=1/' operator.conf
command_ends 75 "the unit, and no server" unit
grep -q '^SuccessExitStatus=75$' "$root/daemon/fleet/morph-fleet-canary.service" || fail "the unit fails without a server"

# ---- policies, without SQL
policy() {
	command_ends "$1" "$2" "$fleet" canary policy -d "${who:-$ADMIN}" --json "${@:3}"
}
sql "DELETE FROM fleet.canary_policy WHERE module <> ''"
policy 0 "a policy of all modules" shares=2%,0.5,100% soak_s=12h least_hosts=5 alpha=0.5% automatic=no
json "a policy of all modules" '.rows | length == 1 and (.[0] | .module == "" and .shares == [0.02, 0.5, 1] and .soak_s == 43200
	and .least_hosts == 5 and .alpha == 0.005 and .automatic == false and .rolls_out and .stage_s > 0)'
sql "INSERT INTO fleet.module(module, kind) VALUES ('\\x$m', 0), ('\\xaa00000000000001bbcc', 0) ON CONFLICT DO NOTHING"
policy 0 "a policy of one module" "${m:16}" stage_s=2w automatic=yes
json "a policy of one module" '.rows | length == 2 and .[1].stage_s == 1209600 and .[1].automatic and .[1].least_hosts == 5
	and (.[0].automatic | not)'
policy 0 "the policy of a file" "$BUILD/morph-fleet" margin=0
json "the policy of a file" '.rows | length == 3'
command_ends 0 "policies as text" "$fleet" canary policy -d "$ADMIN"
says out.txt '^  shares       0.02,0.5,1$'
for change in shares=0.5,0.1 shares=1.5 shares= soak_s=-1 soak_s=1y least_hosts=0.5 alpha=x automatic=maybe module=x 'shares={1}' \
	"alpha=0.1'"; do
	case $change in
	shares=0.5,0.1) policy 1 "$change" $change ;; # only the database knows that shares grow
	*) policy 2 "$change" "$change" ;;
	esac
done
# All changes or none.
policy 1 "a bad one among others" least_audits=9 alpha=0
[ "$(sql "SELECT least_audits, alpha FROM fleet.canary_policy WHERE module = ''")" = "3|0.005" ] || fail "half of a change was made"
policy 3 "no module" dddd1111 margin=0
policy 1 "two modules" bb margin=0
policy 2 "default of all modules" default
policy 0 "the default" "${m:16}" default
json "the default" '.rows | length == 2'
who=$(<alpha.conn) policy 1 "a host" margin=0
finish
