#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may do what to the fleet's database: hosts log in by certificate only, and see and write their own rows
# only; what they send is checked; names run no SQL; a poisoning host is capped, a banned one left out.
. "$(dirname "$0")/lib-fleet.sh"
fleet_start
"$fleet" init >/dev/null || { echo "FAIL: init"; exit 1; }
fleet_host a
fleet_host b
fleet_host judge --reader
a=$(cat a.conn) b=$(cat b.conn) judge=$(cat judge.conn)
today=$(($(date +%s) / 86400))
module=00112233445566778899aabb

# sends NR WHAT ARGUMENT...: send adds NR rows. refused SQLSTATE WHAT ARGUMENT...: send fails so.
sends() {
	local got
	got=$(send "${@:3}" 2>err.txt) && [ "$got" = "$1" ] || fail "$2: '$got', not $1: $(cat err.txt)"
}
refused() {
	if send "${@:3}" >out.txt 2>err.txt; then
		fail "$2: was accepted"
	else
		says err.txt "$1" "$2"
	fi
}

# ---- logging in
login() {
	psql -X -d "$1" -A -t -c 'SELECT session_user' 2>err.txt
}
[ "$(login "$a")" = a ] || fail "a does not get in: $(cat err.txt)"
! login "$(fleet_conn b a)" >out.txt || fail "a's certificate opens b's role"
says err.txt 'certificate authentication failed'
! login "$(fleet_conn postgres a)" >out.txt || fail "a's certificate opens the superuser's role"
! login "${a//sslcert=*/sslcert=none sslkey=none}" >out.txt || fail "no certificate is needed"
! login "${a/sslmode=verify-full/sslmode=disable}" >out.txt || fail "no TLS is needed"
mkdir other && (dir=$dir/other && cp "$dir/../ca.crt" "$dir" && openssl req -x509 -newkey ec -pkeyopt \
	ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=a -keyout "$dir/a.key" -out "$dir/a.crt" 2>/dev/null)
! login "${a//$dir\/a./$dir/other/a.}" >out.txt || fail "a certificate that a made itself opens a's role"
certificate postgres
! login "$(fleet_conn postgres postgres)" >out.txt || fail "a certificate for postgres opens the superuser's role"
command_ends 75 "morph-fleet without TLS" "$fleet" check -d "${a/sslmode=verify-full/sslmode=disable}"

# ---- a host's own rows: counts of 1, 2 and 300 in 0x400000, 0x400001, 0x400010
sends 1 "a's first row" a 1 $module 0 64 "$today" 303 "01023bac02"
sends 1 "b's row" b 1 $module 0 64 "$today" 5 "0305"
sends 1 "a's edge" a 2 $module 1 64 "$today" 1 "0110"
sends 1 "a's paths" a 3 $module 2 0 "$today" 7 "00"
got=$(fleet_sql "$a" "SELECT kind, chunk, total FROM fleet.my_rows('\\x$module')" | tr '\n' ' ')
[ "$got" = "0|64|303 1|64|1 2|0|7 " ] || fail "a sees $got"
got=$(fleet_sql "$judge" "SELECT string_agg(to_hex(vaddr) || ' ' || count, ', ') FROM fleet.sum_counts('\\x$module', 0, $today, 1)")
[ "$got" = "400000 6, 400001 2, 400010 300" ] || fail "the sum: $got"

# ---- a row that is sent twice, late, or by two stores
refused MF001 "the same batch again" a 3 $module 2 0 "$today" 9 "00"
refused MF001 "an earlier batch" a 2 $module 2 0 "$today" 9 "00"
refused MF001 "a batch with a gap" a 7 $module 2 0 "$today" 9 "00"
sends 1 "a newer batch" a 4 $module 2 0 "$today" 9 "00"
sends 1 "the row is taken back" a 5 $module 2 0 "$today" 0 ""
[ "$(fleet_sql "$judge" "SELECT count(*) FROM fleet.read_rows('\\x$module', 2::smallint, 0, $today, 1, NULL)")" = 0 ] ||
	fail "a row that was taken back counts"

# ---- tables
for table in evidence host epoch module module_host traffic setting migration build audit; do
	for sql in "SELECT * FROM fleet.$table" "DELETE FROM fleet.$table" "COPY fleet.$table TO STDOUT" "TRUNCATE fleet.$table"; do
		! fleet_sql "$a" "$sql" >out.txt 2>err.txt || fail "a host may: $sql"
		says err.txt 'permission denied' "$sql"
	done
	! fleet_sql "$judge" "DELETE FROM fleet.$table" >out.txt 2>err.txt || fail "a reader deletes from $table"
done
for sql in "SELECT fleet.ban('b', true)" "SELECT fleet.enrol('c', true, true)" "SELECT fleet.forget(99999)" "SELECT fleet.add_host('c')" \
	"SELECT fleet.add_traffic(1, 0, 0, -99999)" "SELECT fleet.protect('fleet.host', true)" "SET ROLE morph_fleet_owner" "SET ROLE b" \
	"SET SESSION AUTHORIZATION b" "CREATE TABLE public.t(i int)" "CREATE TEMP TABLE t(i int)" "CREATE SCHEMA s" \
	"GRANT morph_fleet_operator TO a" "ALTER ROLE a CREATEROLE" "UPDATE fleet.setting SET value = 0"; do
	! fleet_sql "$a" "$sql" >out.txt 2>err.txt || fail "a host may: $sql"
done
# Even if a function of the owner has a hole, rows of other hosts stay out of reach.
fleet_sql "$ADMIN" "
	CREATE FUNCTION fleet.hole(sql text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS \$\$
	DECLARE nr bigint; BEGIN EXECUTE sql; GET DIAGNOSTICS nr = ROW_COUNT; RETURN nr; END \$\$;
	ALTER FUNCTION fleet.hole(text) OWNER TO morph_fleet_owner;
	GRANT EXECUTE ON FUNCTION fleet.hole(text) TO morph_fleet_host"
before=$(fleet_sql "$ADMIN" "SELECT md5(string_agg(e::text, ',' ORDER BY e)) FROM fleet.evidence e WHERE host <> 1")
hole() {
	fleet_sql "$a" "SELECT fleet.hole(\$x\$$1\$x\$)" 2>err.txt
}
[ "$(hole "UPDATE fleet.evidence SET total = 0, data = ''''" 2>/dev/null || hole "UPDATE fleet.evidence SET total = total")" = 3 ] ||
	fail "a hole changes other rows than a's three: $(cat err.txt)"
! hole "UPDATE fleet.evidence SET host = 2" || fail "a hole gives rows to b"
! hole "INSERT INTO fleet.evidence VALUES ('\\x0011223344556677', 0, 1, 1, 2, 1, 1, false, 1, 1, '\\x01')" || fail "a hole writes for b"
says err.txt 'row-level security'
[ "$(hole "DELETE FROM fleet.evidence WHERE host <> 1")" = 0 ] || fail "a hole deletes b's rows"
[ "$(hole "UPDATE fleet.host SET banned_at = now() WHERE name = ''b''" 2>/dev/null || echo 0)" = 0 ] || fail "a hole bans b"
[ "$(hole "SELECT FROM fleet.evidence")" = 3 ] || fail "a hole shows b's rows"
after=$(fleet_sql "$ADMIN" "SELECT md5(string_agg(e::text, ',' ORDER BY e)) FROM fleet.evidence e WHERE host <> 1")
[ "$before" = "$after" ] || fail "b's rows changed"
fleet_sql "$ADMIN" 'DROP FUNCTION fleet.hole(text)'

# ---- what no correct client sends
seq=6
bad() {
	refused "$1" "$2" a $seq "${@:3}"
}
bad MF003 "a wrong total" $module 0 64 "$today" 304 "01023bac02"
bad MF003 "no data, but a total" $module 0 64 "$today" 1 ""
bad MF003 "data cut short" $module 0 64 "$today" 303 "01023bac"
bad MF003 "a count of 0" $module 0 64 "$today" 1 "0300"
bad MF003 "a count of 2^46" $module 0 64 "$today" 70368744177664 "0380808080808010"
bad MF003 "an address outside of the chunk" $module 0 64 "$today" 2 "fdff0f01"
bad MF003 "a distance without end" $module 0 64 "$today" 1 "8080808001"
bad MF003 "a count without end" $module 0 64 "$today" 1 "03$(printf '80%.0s' {1..40})01"
bad MF003 "a distance that is cut short" $module 0 64 "$today" 1 "0580"
bad MF003 "a negative chunk" $module 0 -1 "$today" 1 "01"
bad MF003 "addresses beyond the text" $module 0 9000 "$today" 1 "01"
bad MF003 "a kind that is not there" $module 9 64 "$today" 1 "01"
bad MF003 "an edge without a target" $module 1 64 "$today" 1 "01"
bad MF003 "more mispredicted than counted" $module 1 64 "$today" 1 "051002"
bad MF003 "a total of 2^49" $module 2 0 "$today" 562949953421312 "00"
bad MF003 "a negative day" $module 0 64 -1 1 "01" "$today"
bad MF003 "a short module" 00112233 0 64 "$today" 1 "01"
bad MF004 "tomorrow" $module 0 64 $((today + 1)) 1 "01"
bad MF004 "two years ago" $module 0 64 $((today - 730)) 1 "01"
bad MF003 "more than a megabyte" $module 2 0 "$today" 1 "$(printf '%0*d' 2100000 0)"
sends 1 "a good row after bad ones" a $seq $module 0 64 "$today" 304 "01023bad02"
fleet_sql "$a" "BEGIN; SELECT FROM fleet.batch('0123456789abcdef', 0, 1, 1);
	SELECT fleet.push_rows('0123456789abcdef', 1, ARRAY['\\x1111111111111111'::bytea], ARRAY[0::smallint], ARRAY[$today], ARRAY[NULL::int], ARRAY[$today],
	ARRAY[1::bigint], ARRAY[false], ARRAY[1::bigint], ARRAY['\\x01'::bytea])" -v VERBOSITY=sqlstate >out.txt 2>err.txt
says err.txt MF002 "a module that was not named"
fleet_sql "$a" "BEGIN; SELECT FROM fleet.batch('0123456789abcdef', 0, 1, 1);
	SELECT fleet.push_rows('0123456789abcdef', 1, ARRAY['\\x$module'::bytea], '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')" \
	-v VERBOSITY=sqlstate >out.txt 2>err.txt
says err.txt MF003 "arrays of different lengths"
fleet_sql "$a" "BEGIN; SELECT FROM fleet.batch('0123456789abcdef', 0, 1, 1);
	SELECT fleet.push_rows('0123456789abcdef', 1, ARRAY['\\x$module'::bytea, '\\x$module'], '{0,0}', '{9,9}', '{9,9}', '{$today,$today}', '{64,64}',
	'{f,f}', '{1,2}', ARRAY['\\x01'::bytea, '\\x02'])" -v VERBOSITY=sqlstate >out.txt 2>err.txt
says err.txt 21000 "one row twice in a call"
# Random bytes, and packed ones with another bit: what is accepted is what readers decode, and lies in its chunk.
packed=14207ff100801440229b5272d731bcdfd95bf90f228df44fb06403634909266c35705b36a0
fleet_sql "$ADMIN" "CREATE FUNCTION pg_temp.total_of(data bytea) RETURNS bigint LANGUAGE plpgsql AS \$\$
	BEGIN RETURN fleet.counts_total(data); EXCEPTION WHEN SQLSTATE 'MF003' THEN RETURN NULL; END \$\$;
	SELECT setseed(0.24);
	CREATE TEMP TABLE random AS SELECT substr(decode(md5(random()::text), 'hex'), 1, 1 + i % 16) AS data FROM generate_series(1, 6000) i
		UNION ALL SELECT set_bit(p.data, i, 1 - get_bit(p.data, i))
		FROM (VALUES ('\\x$packed'::bytea)) p(data), generate_series(0, 8 * length(p.data) - 1) i;
	SELECT count(*) > 500, count(*) < 5500, count(*) = count(*) FILTER (WHERE t.total = d.total AND d.last < 65536),
		count(*) FILTER (WHERE get_byte(r.data, length(r.data) - 1) > 127) > 20
	FROM random r CROSS JOIN LATERAL pg_temp.total_of(r.data) AS t(total) CROSS JOIN LATERAL
		(SELECT sum(c.count) AS total, max(c.vaddr) AS last FROM fleet.decode_counts(0, r.data) c WHERE t.total IS NOT NULL) d
	WHERE t.total IS NOT NULL" >out.txt 2>err.txt
[ "$(tail -n 1 out.txt)" = 't|t|t|t' ] || fail "counts_total() and decode_counts() differ: $(cat out.txt err.txt)"
fleet_sql "$ADMIN" "UPDATE fleet.setting SET value = 1000 WHERE name = 'bytes_per_day'"
for nr in 1 2 3 4 5 6 7 8 9 10 11 12; do
	send b $((nr + 1)) $module 0 64 "$today" 5 "0305" >out.txt 2>err.txt || break
done
says err.txt MF005 "the quota"
[ $nr -gt 2 ] && [ $nr -lt 12 ] || fail "the quota ends after $nr batches"
fleet_sql "$ADMIN" "UPDATE fleet.setting SET value = 67108864 WHERE name = 'bytes_per_day'"

# ---- names are data
names=("'; DROP TABLE fleet.evidence; --" '"; DROP SCHEMA fleet CASCADE; --' "\\'; SELECT fleet.ban('b', true); --" '$$; DROP ROLE b; $$'
	"a' OR '1'='1" '%I %s %L' "x'); SELECT pg_sleep(100); --" '${IFS}' '`id`' 'é漢' '../../etc/passwd' "$(printf '%4096d' 0)" '')
for name in "${names[@]}"; do
	fleet_sql_file() { psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" -v name="$name" -f - ; }
	got=$(fleet_sql_file "$a" <<<"SELECT fleet.push_modules(ARRAY['\\x$module'::bytea], ARRAY[0::smallint], ARRAY[1048576], ARRAY[:'name']);" 2>&1)
	[ "$got" = 1 ] || fail "the name '${name:0:40}': $got"
	got=$(fleet_sql_file "$judge" <<<"SELECT nr_hosts FROM fleet.versions(:'name');" 2>&1)
	[ "$got" = 1 ] || fail "versions of '${name:0:40}': $got"
	command_ends 1 "enrol '${name:0:40}'" "$fleet" enrol -- "$name"
	command_ends 1 "ban '${name:0:40}'" "$fleet" ban -- "$name"
done
for name in $'two\nlines' $'\e[31m' "$(printf '%5000d' 0)"; do
	got=$(fleet_sql_file "$a" <<<"SELECT fleet.push_modules(ARRAY['\\x$module'::bytea], ARRAY[0::smallint], ARRAY[1048576], ARRAY[:'name']);" 2>&1)
	[[ $got == *"is damaged"* ]] || fail "a damaged name: $got"
done
command_ends 0 "check after all this" "$fleet" check
[ ! -s out.txt ] || fail "check: $(cat out.txt)"

# ---- ban
sum() {
	fleet_sql "$judge" "SELECT coalesce(sum(count), 0) FROM fleet.sum_counts('\\x$module', 0, $today, ${1:-1})"
}
[ "$(sum)" = 309 ] || fail "the sum before the ban: $(sum)"
command_ends 0 "ban" "$fleet" ban b
[ "$(sum)" = 304 ] || fail "a banned host counts: $(sum)"
command_ends 0 "hosts" "$fleet" hosts -d "$judge" --json
json "hosts" '[.rows[] | select(.banned).name] == ["b"] and (.rows[] | select(.name == "a").sent_at) > 0'
command_ends 0 "hosts as text" "$fleet" hosts -d "$judge"
says out.txt '^b .* yes$'
[ "$(fleet_sql "$judge" 'SELECT count(DISTINCT host) FROM fleet.evidence')" = 1 ] || fail "a reader sees the rows of a banned host"
refused MF006 "a banned host's batch" b $nr $module 0 64 "$today" 5 "0305"
fleet_sql "$b" "SELECT fleet.my_rows('\\x$module')" >out.txt 2>err.txt && fail "a banned host reads"
command_ends 0 "unban" "$fleet" unban b
[ "$(sum)" = 309 ] || fail "the sum after the ban: $(sum)"
command_ends 0 "hosts after the ban" "$fleet" hosts -d "$judge" --json
json "hosts after the ban" 'all(.rows[]; .banned | not)'
command_ends 1 "ban nobody" "$fleet" ban nobody
says err.txt 'nobody: no such host'

# ---- a poisoning host adds no more than the cap: 20 hosts of about 1000 samples, and one of 2^20. The rows
# come from the superuser, since only their sums are tested here.
poison=aa00000000000000bb
fleet_sql "$ADMIN" "
	INSERT INTO fleet.module(module, kind) VALUES ('\\x$poison', 0);
	INSERT INTO fleet.host(name) SELECT 'many' || i FROM generate_series(1, 21) i;
	-- A count of 900 + i in the first address; the poisoner's is 2^20, in the second.
	INSERT INTO fleet.evidence SELECT '\\x$poison', 0, 1, $today, h.id, 1, $today, false, 1, 900 + i,
		('\\x03' || to_hex(((900 + i) & 127) | 128) || lpad(to_hex((900 + i) >> 7), 2, '0'))::bytea
	FROM generate_series(1, 20) i JOIN fleet.host h ON h.name = 'many' || i;
	INSERT INTO fleet.evidence SELECT '\\x$poison', 0, 1, $today, h.id, 1, $today, false, 1, 1048576, '\\x07808040'
	FROM fleet.host h WHERE h.name = 'many21'"
share() {
	fleet_sql "$judge" "SELECT string_agg(vaddr - 65536 || ' ' || count, ', ' ORDER BY vaddr)
		FROM fleet.sum_counts('\\x$poison', 0, $today, $1)"
}
[ "$(share 1)" = "0 18210, 1 1048576" ] || fail "the plain sum: $(share 1)"
# The nearest rank of 0.9 among 21 totals is the 19th, 919; the 20th is capped to it, too. Weights are rounded
# down to a multiple of 2^-16.
got=$(share 0.9)
[ "$got" = "0 18209, 1 912" ] || fail "the robust sum: $got"
got=$(share 0.5)
[[ $got == "0 "*", 1 896" ]] || fail "the median's sum: $got"
# With two hosts the quantile would be the poisoner's total; the cap is the other one's.
fleet_sql "$ADMIN" "DELETE FROM fleet.evidence WHERE module = '\\x$poison' AND total BETWEEN 902 AND 1000"
[ "$(share 0.9)" = "0 901, 1 896" ] || fail "two hosts: $(share 0.9)"
got=$(fleet_sql "$judge" "SELECT string_agg(total || ' ' || weighted, ', ' ORDER BY total)
	FROM fleet.host_shares('\\x$poison', 0::smallint, 0, $today, 0.9)")
[[ $got == "901 901, 1048576 896" ]] || fail "shares: $got"
finish
