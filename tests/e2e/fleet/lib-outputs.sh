#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes what each command of morph-fleet prints with --json to DIR, for e2e/project/json: DIR/fleet-COMMAND.json.
# Exits with 77 where there is no PostgreSQL.
out=$1
. "$(dirname "$0")/lib-fleet.sh"
fleet_start
"$fleet" init >/dev/null || exit 1
# Roll-outs have tests of their own, in canary.sh.
fleet_sql "$ADMIN" 'UPDATE fleet.canary_policy SET rolls_out = false' || exit 1
fleet_host alpha --reader
conn=$(<alpha.conn)
head -c 16 /dev/zero >salt
"$BUILD/tools/fleet-store" add s.db truth.db 1 $(($(date +%s) / 86400)) 9 || exit 1
"$fleet" push -d "$conn" --db=s.db --salt-file=salt --json >"$out/fleet-push.json" &&
	"$fleet" pull -d "$conn" --top=9 -o sum.db --json >"$out/fleet-pull.json" &&
	"$fleet" modules -d "$conn" --json >"$out/fleet-modules.json" &&
	"$fleet" hosts -d "$conn" --json a000 >"$out/fleet-hosts.json" &&
	"$fleet" hosts -d "$conn" --json >"$out/fleet-fleet-hosts.json" &&
	"$fleet" versions -d "$conn" --salt-file=salt --json /usr/bin/m0 >"$out/fleet-versions.json" || exit 1
# A build, and its installation.
fleet_host maker --builder
cat >prog.c <<'C'
int main(int argc, char **argv) { return argc > 9 ? argv[0][0] : 0; }
C
gcc -O2 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs prog.c -o prog && mkdir originals etc state && cp prog originals/ &&
	"$fleet" request -d "$ADMIN" prog --all >/dev/null &&
	"$fleet" build -d "$(<maker.conn)" --once --originals=originals >/dev/null &&
	"$fleet" install -d "$conn" --db=s.db --policy=etc --state-dir=state --backup-dir="$dir/backup" --json prog >"$out/fleet-install.json" &&
	"$fleet" builds -d "$ADMIN" --json >"$out/fleet-builds.json" &&
	"$fleet" renew -d "$conn" --db=s.db --state-dir=state --backup-dir="$dir/backup" --json >"$out/fleet-renew.json" &&
	fleet_sql "$ADMIN" 'UPDATE fleet.canary_policy SET rolls_out = true' && "$fleet" canary -d "$ADMIN" step >/dev/null &&
	fleet_sql "$ADMIN" "INSERT INTO fleet.audit(module, options, version, host, release, seq, day, pairs, log_faster, ratio,
		lowest, highest) SELECT module, options, version, 1, 1, 1, 1, 9, 0, 1.02, 1.01, 1.03 FROM fleet.canary" &&
	"$fleet" canary -d "$ADMIN" --json >"$out/fleet-canary.json" &&
	"$fleet" canary policy -d "$ADMIN" --json >"$out/fleet-canary-policy.json" &&
	"$fleet" report -d "$conn" --json >"$out/fleet-report.json"
