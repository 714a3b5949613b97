#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names are data: random names with quotes, comments, control characters, broken UTF-8 and pieces of SQL, as
# names of files, hosts and databases, and as build-ids. None of them changes the database otherwise than a
# harmless name does. NAMES= says how many (default 20, with MORPH_LONG=1 60), SEED= which ones.
. "$(dirname "$0")/lib-fleet.sh"
NAMES=${NAMES:-$((20 + 40 * ${MORPH_LONG:-0}))}
need python3 jq
fleet_start
"$fleet" init >/dev/null || exit 1
store=$BUILD/tools/fleet-store
[ -x "$store" ] || { echo "skip: fleet-store was not built"; exit 77; }
today=$(($(date +%s) / 86400))
fleet_host a --reader
a=$(<a.conn)
head -c 32 /dev/urandom >salt
echo machine >id
fleet_sql "$ADMIN" "CREATE TABLE public.canary AS SELECT 'sings' AS state"

# Names, each ended by a NUL.
python3 - "${SEED:-1}" "$NAMES" >names <<'PYTHON'
import random
import sys

rng = random.Random(int(sys.argv[1]))
PIECES = [b"'", b"''", b'"', b"\\", b"\\'", b"`", b"$$", b"$x$", b";", b"--", b"/*", b"*/", b"(", b")", b"%", b"%s", b"%I", b"%n",
          b":", b":'name'", b"\\;", b"\\!", b"|", b"\n", b"\r", b"\t", b"\x1b[31m", b"\x01", b"\x7f", b"\xbf'", b"\xc0\xa7", b"\xff", b"\xf0\x9f\x92\x80",
          "\u02bc".encode(), "\uff07".encode(), "\u2028".encode(), "\u202e".encode(), "\u00e9".encode(), "\u6f22".encode(), b"E'", b"U&'\\0027'", b"{", b"}", b",", b"NULL", b"=", b" ",
          b"$(touch /tmp/morph-injected)", b"`touch /tmp/morph-injected`",
          b"DROP TABLE public.canary", b"UPDATE public.canary SET state = 'dead'", b"SELECT fleet.ban('a', true)", b"DROP SCHEMA fleet CASCADE",
          b"' OR '1'='1", b"'); DELETE FROM fleet.evidence; --", b"CREATE ROLE intruder SUPERUSER", b"COPY canary TO PROGRAM 'id'", b"pg_sleep(99)",
          b"/usr/bin/m1", b"..", b"/", b"a", b"web-01", b"0", b"host=/tmp", b"dbname=postgres", b"sslmode=disable"]
for i in range(int(sys.argv[2])):
    name = b"".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 9)))
    if i % 40 == 0:
        name *= 4000 // len(name)
    sys.stdout.buffer.write(name + b"\0")
PYTHON
mapfile -d '' -t names <names
[ ${#names[@]} = "$NAMES" ] || fail "${#names[@]} names"

# state: what no name may change: the schema, rights, functions, roles, rows, the canary
state() {
	"$pg_bin/pg_dump" -d "$ADMIN" --schema-only 2>dump.err | sed '/^\\\(un\)\?restrict/d' | sha256sum
	fleet_sql "$ADMIN" "SELECT rolname, rolsuper, rolcreaterole, rolcanlogin FROM pg_roles ORDER BY 1;
		SELECT roleid::regrole, member::regrole FROM pg_auth_members ORDER BY 1, 2;
		SELECT name, banned_at FROM fleet.host ORDER BY 1; SELECT state FROM public.canary; SELECT count(*) FROM fleet.migration;
		SELECT datname FROM pg_database ORDER BY 1; SELECT * FROM fleet.setting ORDER BY 1"
}
state >before.txt
[ "$(wc -l <before.txt)" -gt 20 ] || fail "no state: $(<before.txt)"
# same WHAT
same() {
	state >after.txt
	cmp -s before.txt after.txt || { fail "$1 changed the database"; diff before.txt after.txt | head -n 5; }
	[ ! -e /tmp/morph-injected ] || fail "$1 ran a command"
}

# ---- names of files: sent as they are, hashed, and asked for
xargs -0 -n 100 "$store" named s.db "$today" <names || fail "named"
modules=$(sqlite3 s.db "SELECT count(*) FROM module")
command_ends 0 "plain names" "$fleet" push -d "$a" --db=s.db --machine-id=id --give-up=0 --names=plain --json
json "plain names" ".nr_modules == $modules and .nr_refused == 0"
[ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.module_host WHERE name !~ '[[:cntrl:]]'")" = "$modules" ] ||
	fail "names are missing, or have control characters"
same "pushes of plain names"
fleet_sql "$ADMIN" 'SELECT name FROM fleet.module_host' >sent.txt
[ "$(sort -u sent.txt | wc -l)" -gt $((modules * 8 / 10)) ] || fail "names were mixed up"
for name in "${names[@]}"; do
	"$fleet" versions -d "$a" --json -- "$name" >out.txt 2>err.txt
	status=$?
	[ $status = 0 ] || [ $status = 3 ] || [ $status = 1 ] || [ $status = 2 ] || fail "versions: status $status: $(<err.txt)"
	[ "$(wc -l <err.txt)" -le 1 ] || [ $status = 2 ] || fail "versions: more than one line: $(<err.txt)"
done
same "versions of names"
"$fleet" modules -d "$a" -n 1000 >out.txt 2>err.txt || fail "modules: $(<err.txt)"
! grep -q $'[\e\x01]' out.txt || fail "modules prints control characters"
"$fleet" modules -d "$a" -n 1000 --json >out.txt && jq -e '.rows | length' out.txt >/dev/null || fail "modules --json: $(head -c 300 out.txt)"
fleet_sql "$ADMIN" 'TRUNCATE fleet.evidence, fleet.epoch, fleet.module_host' >/dev/null
command_ends 0 "hashed names" "$fleet" push -d "$a" --db=s.db --machine-id=id --give-up=0 --salt-file=salt --json
json "hashed names" ".nr_modules == $modules"
[ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.module_host WHERE name ~ '^#[0-9a-f]{32}\$'")" = "$modules" ] || fail "hashed names"

# ---- names of hosts: no random name is one
for name in "${names[@]}"; do
	[[ $name =~ ^[a-z0-9][a-z0-9_.-]{0,62}$ ]] && continue
	for command in enrol ban unban; do
		"$fleet" $command -- "$name" >out.txt 2>err.txt && fail "$command '$name' was accepted"
	done
done
same "names of hosts"

# ---- build-ids, days, databases
for name in "${names[@]}"; do
	"$fleet" pull -d "$a" -o pulled.db -- "$name" >out.txt 2>err.txt && [ "$name" != 0 ] && fail "pull '$name': $(<out.txt)"
	"$fleet" hosts -d "$a" -- "$name" >out.txt 2>err.txt
	"$fleet" forget --before="$name" >out.txt 2>err.txt && fail "forget '$name'"
	"$fleet" pull -d "$a" --as-of="$name" -o pulled.db 00 >out.txt 2>err.txt && [ "$name" != 0 ] && fail "as of '$name'"
done
same "build-ids and days"

# ---- straight to the functions, with and without a prepared statement
refused=0 taken=0
for name in "${names[@]}"; do
	if psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$a" -v name="$name" -f - >out.txt 2>err.txt <<'SQL'
SELECT fleet.push_modules(ARRAY['\x0011223344556677'::bytea], ARRAY[0::smallint], ARRAY[65536], ARRAY[:'name']);
PREPARE p(text) AS SELECT fleet.push_modules(ARRAY['\x0011223344556677'::bytea], ARRAY[0::smallint], ARRAY[65536], ARRAY[$1]);
EXECUTE p(:'name');
SELECT count(*) FROM fleet.versions(:'name');
SQL
	then
		taken=$((taken + 1))
	else
		refused=$((refused + 1))
	fi
done
[ $taken -gt 4 ] && [ $refused -gt 4 ] || fail "$taken names were taken, $refused refused"
same "functions"
command_ends 0 "check after all this" "$fleet" check
[ ! -s out.txt ] || fail "check: $(<out.txt)"
echo "${#names[@]} names of files, hosts, build-ids and days; sent straight to the server: $taken taken, $refused refused"
finish
