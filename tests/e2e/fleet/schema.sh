#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: servers are killed again and again while they are set up
# morph-fleet init, upgrade and check: the schema is made, a killed upgrade can be repeated, two upgrades at
# once do not disturb each other, and check finds each damage.
. "$(dirname "$0")/lib-fleet.sh"
fleet_start

# ---- without a schema
command_ends 1 "upgrade of nothing" "$fleet" upgrade
says err.txt 'no schema is there: say morph-fleet init'
one_line "upgrade of nothing"
command_ends 1 "check of nothing" "$fleet" check
says out.txt 'the schema is missing'

# ---- killed at any point: init goes on where it stopped
for round in 1 2 3 4 5 6; do
	"$fleet" init >/dev/null 2>&1 &
	pid=$!
	sleep "0.0$((round * 2 - 1))"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
done
# A program that was killed may still have a statement running in the server.
"$fleet" init >/dev/null 2>&1 &
command_ends 0 "upgrade after kills" bash -c '"$1" init >/dev/null 2>&1; "$1" upgrade' - "$fleet"
wait
command_ends 0 "check" "$fleet" check
[ ! -s out.txt ] || fail "check: $(cat out.txt)"
got=$(fleet_sql "$ADMIN" 'SELECT count(*), max(number) FROM fleet.migration')
[ "$got" = "1|1" ] || fail "versions: $got"
command_ends 1 "init again" "$fleet" init
says err.txt 'the schema is there already'
command_ends 0 "upgrade again" "$fleet" upgrade
says out.txt '^the schema is up to date$'

# ---- a crash of the server in the middle of an upgrade
fleet_sql "$ADMIN" 'CREATE DATABASE second' >/dev/null
second=${ADMIN/dbname=fleet/dbname=second}
"$fleet" init -d "$second" >/dev/null 2>&1 &
sleep 0.06
fleet_crash
wait
fleet_restart
command_ends 0 "init after a crash" bash -c '"$1" init -d "$2" >/dev/null 2>&1; "$1" check -d "$2"' - "$fleet" "$second"

# ---- init by an operator who is no superuser
fleet_sql "$ADMIN" 'CREATE ROLE op LOGIN CREATEROLE' && fleet_sql "$ADMIN" 'CREATE DATABASE third OWNER op' || fail "no op"
third="host=$dir/pg port=$fleet_port user=op dbname=third"
fleet_sql "$ADMIN" 'GRANT morph_fleet_owner, morph_fleet_host, morph_fleet_reader, morph_fleet_operator, morph_fleet_builder TO op WITH ADMIN OPTION'
command_ends 0 "init by an operator" "$fleet" init -d "$third"
command_ends 0 "check by an operator" "$fleet" check -d "$third"
command_ends 0 "enrol by an operator" "$fleet" enrol -d "$third" --reader h1 h2
got=$(fleet_sql "$third" "SELECT count(*) FROM pg_roles WHERE rolname IN ('h1', 'h2') AND rolcanlogin")
[ "$got" = 2 ] || fail "roles of hosts: $got"

# ---- check finds each damage. damage SQL PATTERN: in a transaction of its own database
nr=0
damage() {
	local copy=${ADMIN/dbname=fleet/dbname=damaged}
	nr=$((nr + 1))
	fleet_sql "${ADMIN/dbname=fleet/dbname=postgres}" 'DROP DATABASE IF EXISTS damaged' 2>/dev/null &&
		fleet_sql "${ADMIN/dbname=fleet/dbname=postgres}" 'CREATE DATABASE damaged TEMPLATE fleet' || fail "no copy"
	fleet_sql "$copy" "$1" >/dev/null || fail "$1"
	command_ends 1 "$1" "$fleet" check -d "$copy"
	says out.txt "$2" "$1"
	[ "$(wc -l <out.txt)" = 1 ] || fail "$1: more than one finding: $(cat out.txt)"
}
damage 'DELETE FROM fleet.migration' '^the schema is missing: say morph-fleet init$'
damage 'UPDATE fleet.migration SET number = number - 2' '^the schema has version -1, and this program knows 1: say morph-fleet upgrade$'
damage 'INSERT INTO fleet.migration VALUES (999)' '^the schema has version 999, and this program knows 1 only$'
damage 'ALTER TABLE fleet.evidence OWNER TO postgres' '^table fleet.evidence is owned by postgres'
damage 'ALTER TABLE fleet.evidence DISABLE ROW LEVEL SECURITY' '^row-level security is off for table fleet.evidence$'
damage 'ALTER TABLE fleet.host NO FORCE ROW LEVEL SECURITY' '^row-level security of table fleet.host does not hold'
damage 'DROP POLICY own_rows ON fleet.evidence' '^table fleet.evidence has the policies {operators,readers}'
damage 'CREATE POLICY all_rows ON fleet.evidence USING (true)' '^table fleet.evidence has the policies {all_rows,'
damage 'GRANT INSERT ON fleet.evidence TO morph_fleet_host' '^morph_fleet_host has INSERT on table fleet.evidence$'
damage 'ALTER FUNCTION fleet.ban(text, boolean) RESET search_path' '^function fleet.ban.* without a fixed search_path$'
damage 'GRANT EXECUTE ON FUNCTION fleet.ban(text, boolean) TO PUBLIC' '^everybody may call function fleet.ban'
damage 'DROP POLICY hosts ON fleet.build' '^table fleet.build has the policies {builders,operators,'
damage 'GRANT UPDATE ON fleet.build TO morph_fleet_builder' '^morph_fleet_builder has UPDATE on table fleet.build$'
damage 'DROP POLICY own_rows ON fleet.build_host' '^table fleet.build_host has the policies {operators,operators_read,readers}'
damage 'DROP POLICY see ON fleet.canary' '^table fleet.canary has the policies {operators,readers}, not {operators,readers,see}$'
damage 'GRANT UPDATE ON fleet.canary TO morph_fleet_operator' '^morph_fleet_operator has UPDATE on table fleet.canary$'
damage 'DROP TABLE fleet.audit' '^table fleet.audit is missing$'
command_ends 1 "upgrade of a newer schema" bash -c '
	psql -Xqd "$2" -c "INSERT INTO fleet.migration VALUES (999)"; "$1" upgrade -d "$2"' - "$fleet" \
	"${ADMIN/dbname=fleet/dbname=damaged}"
says err.txt 'has version 999, and this program knows [0-9]* only'
fleet_sql "$ADMIN" 'ALTER ROLE morph_fleet_host LOGIN'
command_ends 1 "a group that logs in" "$fleet" check
says out.txt '^role morph_fleet_host may log in'
fleet_sql "$ADMIN" 'ALTER ROLE morph_fleet_host NOLOGIN'

# ---- pg_hba.conf
hba=$dir/pg/data/pg_hba.conf
cp "$hba" hba
echo 'host all all 127.0.0.1/32 trust' >>"$hba"
command_ends 1 "everybody by network" "$fleet" check
says out.txt "^pg_hba.conf, line $(wc -l <"$hba"): anybody gets in by network"
sed '/cert/d' hba >"$hba"
command_ends 1 "no certificates" "$fleet" check
says out.txt '^pg_hba.conf: no line lets hosts in by certificate$'
cat hba >"$hba"

# ---- usage
MORPH_FLEET='' command_ends 75 "an empty database" "$fleet" check -d "host=$dir/none"
one_line "no server"
(unset MORPH_FLEET; "$fleet" check >out.txt 2>err.txt)
[ $? = 2 ] || fail "check without a database is no usage error"
command_ends 2 "enrol without a host" "$fleet" enrol
command_ends 2 "forget without days" "$fleet" forget
command_ends 1 "a host's name" "$fleet" enrol "A'; DROP ROLE h1; --"
says err.txt "a host's name has 1 to 63 characters"
command_ends 1 "a superuser's name" "$fleet" enrol postgres
says err.txt "the role postgres is there, and is not a host's"
echo "$nr damages found"
finish
