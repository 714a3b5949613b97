#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes what each command of morph-fleet prints with --json to DIR, for e2e/project/json: DIR/fleet-COMMAND.json.
# Exits with 77 where there is no PostgreSQL.
out=$1
. "$(dirname "$0")/lib-fleet.sh"
fleet_start
"$fleet" init >/dev/null || exit 1
fleet_host alpha --reader
conn=$(<alpha.conn)
head -c 16 /dev/zero >salt
"$BUILD/tools/fleet-store" add s.db truth.db 1 $(($(date +%s) / 86400)) 9 || exit 1
"$fleet" push -d "$conn" --db=s.db --salt-file=salt --json >"$out/fleet-push.json" &&
	"$fleet" pull -d "$conn" --top=9 -o sum.db --json >"$out/fleet-pull.json" &&
	"$fleet" modules -d "$conn" --json >"$out/fleet-modules.json" &&
	"$fleet" hosts -d "$conn" --json a000 >"$out/fleet-hosts.json" &&
	"$fleet" versions -d "$conn" --salt-file=salt --json /usr/bin/m0 >"$out/fleet-versions.json"
