#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: the whole way of a build on two hosts
# The whole way of a build on two hosts: nothing is installed before it is rolled out; install notes a lease before the
# build is in place; a host without its server undoes the build when the lease is over; a withdrawn build is undone; a
# build that waits for an audit is not put in place any more.
. "$(dirname "$0")/lib-builds.sh"
builds_start
fleet_sql "$ADMIN" "UPDATE fleet.canary_policy SET rolls_out = true"
for name in alpha beta; do
	cp prog $name/prog
done
request 0 "request" prog --all
build 0 "build" maker
build_is done "build" --all
step() {
	command_ends 0 "$1" "$fleet" canary -d "$ADMIN" step
}
renew() {
	command_ends "$1" "$2" "$fleet" renew -d "$(<"$3.conn")" --db="$3.db" --state-dir="$dir/$3/state" \
		--backup-dir="$dir/$3/backup" "${@:4}"
}
leases() {
	jq -r "$2" "$1/state/fleet-leases.json"
}
over() {
	leases "$1" '.leases[0].expires_s = (now | floor) - 1' >new && mv new "$1/state/fleet-leases.json"
}
sets() {
	fleet_sql "$ADMIN" "SELECT fleet.set_canary(module, options, version, NULL, '$1') FROM fleet.canary" >/dev/null || fail "$1"
}

# ---- before the roll-out, and in it. Two hosts have the module: both belong to the first stage.
install 0 "not rolled out" alpha alpha/prog
is_original alpha "not rolled out"
step "start"
install 0 "rolled out" alpha alpha/prog
cp alpha/prog output
cmp -s prog alpha/prog && fail "rolled out: nothing was installed"
[ "$(leases alpha '.leases | length, (.[0].expires_s - .[0].granted_s)')" = $'1\n172800' ] || fail "the lease: $(leases alpha .)"
[ "$(leases alpha '.leases[0].path')" = "$dir/alpha/prog" ] || fail "the lease's path: $(leases alpha .)"
install 0 "again" alpha alpha/prog
is_output alpha "again"
renew 0 "renew" alpha
says out.txt 'alpha/prog: leased until' "renew"
got=$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.audit a JOIN fleet.build b ON a.output_hash = b.output_hash")
[ "$got" = 1 ] || fail "the evidence is not of the builder's bytes: $got"

# ---- killed at any moment: no build is in place without a lease
nr_in_place=0
for i in {0..11}; do
	rm -f beta/state/fleet-leases.json
	cp prog beta/prog
	{
		"$fleet" install -d "$(<beta.conn)" --db=beta.db --policy=etc --backup-dir="$dir/beta/backup" --state-dir="$dir/beta/state" \
			beta/prog >/dev/null 2>&1 &
		sleep "0.$(printf '%03d' $((i * 60)))"
		kill -9 $!
		wait $!
	} 2>/dev/null
	# A program that it started may still be at work.
	while pgrep -f "$dir/beta/prog" >/dev/null; do sleep 0.05; done
	if ! cmp -s prog beta/prog; then
		nr_in_place=$((nr_in_place + 1))
		[ "$(leases beta '.leases | length')" = 1 ] || fail "killed: a build without a lease"
		"$BUILD/morph" -d beta.db --backup-dir=beta/backup undo "$dir/beta/prog" >/dev/null 2>&1
	fi
done
cp prog beta/prog

# ---- the server is gone
fleet_crash
renew 75 "the server is gone" alpha
is_output alpha "the server is gone"
over alpha
renew 75 "the lease is over" alpha
is_original alpha "the lease is over"
[ "$("$BUILD/morph" -d alpha.db history --json alpha/prog | jq -r '[.. | .verdict? // empty] | last')" = "done" ] ||
	fail "the lease is over: $("$BUILD/morph" -d alpha.db history alpha/prog)"
fleet_restart

# ---- the server is back: the build may be had again, and is then withdrawn
install 0 "the server is back" alpha alpha/prog
is_output alpha "the server is back"
sets hold
renew 0 "held" alpha
says out.txt 'leased until' "held"
sets withdraw
install 0 "withdrawn" alpha alpha/prog
is_original alpha "withdrawn, by install"
host_is alpha undone "withdrawn, by install"
renew 0 "withdrawn" alpha
[ "$(leases alpha '.leases | length')" = 0 ] || fail "withdrawn: the lease stays"

# ---- a new release is a new roll-out. A rule that audits: the build waits, and is withdrawn before the audit
. "$root/tests/e2e/manager/lib-speed.sh"
worker_by_speed worker
cat >speed <<SH
#!/bin/sh
if cmp -s "$dir/beta/prog" "$dir/prog"; then echo speed 100; else echo speed 120; fi
SH
chmod 755 speed
printf '%s\n' "program = $dir/beta/prog" "mode = adopt" "command = $dir/speed" "audit-time = 60" >etc/watch.d/prog.conf
worker() {
	command_ends 0 "$1" worker/morph-worker --now --config=etc --db=beta.db --state-dir=beta/state --backup-dir="$dir/beta/backup"
}
request 0 "again" --again prog --all
build 0 "again" maker
step "a new release"
[ "$(fleet_sql "$ADMIN" 'SELECT state, release FROM fleet.canary')" = "running|2" ] || fail "a new release: $(fleet_sql "$ADMIN" 'TABLE fleet.canary')"
[ "$(fleet_sql "$ADMIN" 'SELECT count(*) = max(revision) FROM fleet.canary_history')" = t ] || fail "the history has gaps"
install 0 "a rule that audits" beta beta/prog
says out.txt 'waiting' "a rule that audits"
renew 0 "waiting" beta
says out.txt 'leased until' "waiting"
sets withdraw
renew 0 "withdrawn while it waits" beta
says out.txt 'undone' "withdrawn while it waits"
worker "withdrawn while it waits"
is_original beta "withdrawn while it waits"

# ---- what the host finds out arrives: the worker's audit, then samples in use
request 0 "once more" --again prog --all
build 0 "once more" maker
step "once more"
install 0 "to be audited" beta beta/prog
says out.txt 'waiting' "to be audited"
worker "the audit"
cmp -s prog beta/prog && fail "the audit: not adopted: $(cat err.txt)"
renew 0 "audited" beta
of_beta() {
	fleet_sql "$ADMIN" "SELECT $1 FROM fleet.audit a JOIN fleet.host h ON h.id = a.host WHERE h.name = 'beta'"
}
got=$(of_beta "release, state, round(ratio::numeric, 2), pairs >= 8, lowest > 1, log_faster > 1, log_slower < -1, used_ratio IS NULL, crashes")
[ "$got" = "3|adopted|1.20|t|t|t|t|t|0" ] || fail "the audit: the server has $got"
module=$(sqlite3 beta.db "SELECT key FROM module WHERE hex(build_id) = upper('$id')")
sqlite3 beta.db "UPDATE job SET before_samples = 100000, before_all = 100000, before_crashes = 2;
	INSERT OR REPLACE INTO activity VALUES ($module, $(($(date +%s) / 86400)), $(($(date +%s) / 86400)), 230000, 200000, 0, 0)" || fail "no samples"
renew 0 "slower in use" beta
got=$(of_beta "round(used_ratio::numeric, 2), log_used_slower > 5, log_used_faster < 0")
[ "$got" = "1.30|t|t" ] || fail "slower in use: the server has $got"
# A host of two decides nothing alone: its evidence is the greatest, and is left out.
step "slower in use"
[ "$(fleet_sql "$ADMIN" 'SELECT state FROM fleet.canary')" = running ] || fail "one host decides"
# Where no host is doubted, it does.
fleet_sql "$ADMIN" "UPDATE fleet.canary SET policy = policy || '{\"doubted\": 0, \"most_factor\": 1000}'"
step "slower in use, and no host is doubted"
[ "$(fleet_sql "$ADMIN" 'SELECT state FROM fleet.canary')" = withdrawn ] || fail "slower in use: not withdrawn"
renew 0 "withdrawn for use" beta
is_original beta "withdrawn for use"
echo "12 kills: $nr_in_place times the build was in place, with a lease"
finish
