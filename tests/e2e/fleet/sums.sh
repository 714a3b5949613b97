#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: many sums, counted twice
# The fleet's sums: the server's, a reader's and the truth are equal; kills of PostgreSQL, batches that come
# twice or out of order, and restored hosts change nothing; two shards give the same sums as one cluster.
. "$(dirname "$0")/lib-fleet.sh"
need python3
sum_tool=$BUILD/tools/fleet-sum
[ -x "$sum_tool" ] || make -s -C "$root" O="$BUILD" "$sum_tool" >/dev/null || { echo "FAIL: no fleet-sum"; exit 1; }
rows=$root/scripts/bench/fleetrows.py
fleet_start
"$fleet" init >/dev/null || { echo "FAIL: init"; exit 1; }
fleet_host judge --reader
judge=$(cat judge.conn)
today=$(($(date +%s) / 86400))

# ---- 60 hosts: the server, a reader, and the truth
module=11223344556677889900
fleet_sql "$ADMIN" "INSERT INTO fleet.host(name) SELECT 'simulated' || i FROM generate_series(2, 60) i;
	INSERT INTO fleet.module(module, kind) VALUES ('\\x$module', 0)"
# by_server QUANTILE [CONNINFO], by_reader QUANTILE [CONNINFO]: lines "address sum"
by_server() {
	fleet_sql "${2:-$judge}" "SELECT vaddr || ' ' || count FROM fleet.sum_counts('\\x$module', 0, $today, $1)"
}
by_reader() {
	"$sum_tool" "${2:-$judge}" $module 0 "$today" "$1" 2>err.txt || fail "fleet-sum: $(cat err.txt)"
}
python3 "$rows" copy $module 60 200 "$today" >rows.txt
fleet_sql "$ADMIN" 'COPY fleet.evidence FROM STDIN' <rows.txt
python3 "$rows" sum $module 60 200 >truth.txt
[ "$(wc -l <truth.txt)" -gt 200 ] || fail "the truth is small"
by_server 1 | cmp -s - truth.txt || fail "the server's sum is not the truth"
by_reader 1 | cmp -s - truth.txt || fail "the reader's sum is not the truth"
for quantile in 0.9 0.5; do
	by_reader $quantile >robust.txt
	by_server $quantile | cmp -s - robust.txt || fail "robust sums of $quantile differ"
	cmp -s robust.txt truth.txt && fail "the robust sum of $quantile is the plain one"
done
# No host adds more than the cap.
got=$(fleet_sql "$judge" "SELECT count(*), max(weighted) <= percentile_disc(0.9) WITHIN GROUP (ORDER BY total)
	FROM fleet.host_shares('\\x$module', 0::smallint, 0, $today, 0.9)")
[ "$got" = "60|t" ] || fail "shares: $got"
got=$(fleet_sql "$judge" "SELECT nr_hosts, total FROM fleet.list_modules($today, $today)")
[ "$got" = "60|$(awk '{ s += $2 } END { printf "%d", s }' truth.txt)" ] || fail "list_modules: $got"
[ -z "$(fleet_sql "$judge" "SELECT * FROM fleet.list_modules(0, $((today - 1)))")" ] || fail "yesterday has rows"
got=$(fleet_sql "$judge" "SELECT encode(module, 'hex'), text_hash FROM fleet.find_modules('\\x99')")
[ "$got" = "$module|1234605616436508552" ] || fail "find_modules: $got"
[ -z "$(fleet_sql "$judge" "SELECT * FROM fleet.find_modules('\\x9901')")" ] || fail "find_modules finds another build-id"
# Rows whose total lies are left out by the reader and reported.
fleet_sql "$ADMIN" "UPDATE fleet.evidence SET total = total - 1 WHERE host = 3 AND module = '\\x$module'"
"$sum_tool" "$judge" $module 0 "$today" 1 >lies.txt 2>err.txt && fail "lies are not reported"
says err.txt 'wrong=[1-9]'
fleet_sql "$ADMIN" "UPDATE fleet.evidence SET total = total + 1 WHERE host = 3 AND module = '\\x$module'"

# ---- kills, duplicates, other orders: each host counts up to its last batch, whatever happens on the way
killed=aa11223344556677ff
for host in k1 k2 k3; do
	fleet_host $host
done
# A count of N below 128 in one address.
keep_sending() {
	local seq=1 got
	while [ $seq -le 6 ]; do
		got=$(send "$1" $seq $killed 0 5 "$today" $((100 + seq)) "03$(printf %02x $((100 + seq)))" 2>&1)
		case $got in
		1) send "$1" $seq $killed 0 5 "$today" 99 "0363" >/dev/null 2>&1 && echo "$1: a batch counted twice"
			seq=$((seq + 1)) ;;
		# The answer may have been lost: then the server has the batch.
		*MF001*) seq=$((seq + 1)) ;;
		*) sleep 0.2 ;;
		esac
	done
}
for host in k1 k2 k3; do
	keep_sending $host >$host.log 2>&1 &
done
for _ in 1 2; do
	sleep 0.5
	fleet_crash
	fleet_restart
done
wait
cat k?.log
cat k?.log | grep -q . && fail "a batch counted twice"
got=$(fleet_sql "$ADMIN" "SELECT count(*), sum(total), min(seq), max(seq) FROM fleet.evidence WHERE module = '\\x$killed'")
[ "$got" = "3|318|6|6" ] || fail "after kills: $got"
# A restored host goes on in the old epoch: the server sees the fork. Its new epoch is added.
got=$(send k1 5 $killed 0 5 "$today" 99 0363 2>&1)
[[ $got == *MF001* ]] || fail "a restored host overwrites: $got"
got=$(fleet_sql "$(cat k1.conn)" "SELECT FROM fleet.batch('another epoch 16', 0, 77, 1);
	SELECT fleet.push_rows('another epoch 16', 1, ARRAY['\\x$killed'::bytea], ARRAY[0::smallint], ARRAY[$today], ARRAY[NULL::int],
	ARRAY[$today], ARRAY[5::bigint], ARRAY[false], ARRAY[10::bigint], ARRAY['\\x030a'::bytea])")
[ "$got" = 1 ] || fail "a new epoch: $got"
got=$(fleet_sql "$judge" "SELECT vaddr, count FROM fleet.sum_counts('\\x$killed', 0, $today, 1)")
[ "$got" = "327680|328" ] || fail "two epochs: $got"
got=$(fleet_sql "$(cat k1.conn)" "SELECT seq, token FROM fleet.epoch('another epoch 16')")
[ "$got" = "1|77" ] || fail "the epoch: $got"

# ---- a host folds its days: the server's rows of the other days are taken back
folded=bb11223344556677ff
push_days() {
	fleet_sql "$(cat k2.conn)" "SELECT FROM fleet.batch('epoch with days.', $1 - 1, $1, $1);
		SELECT FROM fleet.push_modules(ARRAY['\\x$folded'::bytea], ARRAY[0::smallint], ARRAY[65536], ARRAY['#ab']);
		SELECT fleet.push_rows('epoch with days.', $1, array_fill('\\x$folded'::bytea, ARRAY[$2]), array_fill(0::smallint, ARRAY[$2]),
		$3, array_fill(0::bigint, ARRAY[$2]), array_fill(false, ARRAY[$2]), $4)"
}
got=$(push_days 1 3 "ARRAY[$((today - 2)), $((today - 1)), $today], ARRAY[NULL, NULL, NULL]::int[], ARRAY[$((today - 2)), $((today - 1)), $today]" \
	"ARRAY[1, 2, 3], ARRAY['\\x01', '\\x02', '\\x0303']::bytea[]")
[ "$got" = 3 ] || fail "three days: $got"
got=$(push_days 2 1 "ARRAY[$((today - 2))], ARRAY[$((today - 1))], ARRAY[$((today - 1))]" "ARRAY[4], ARRAY['\\x0304']::bytea[]")
[ "$got" = 1 ] || fail "two days folded: $got"
got=$(fleet_sql "$judge" "SELECT sum(count) FROM fleet.sum_counts('\\x$folded', 0, $today, 1)")
[ "$got" = 7 ] || fail "folded days: $got"
got=$(fleet_sql "$judge" "SELECT nr_hosts, total FROM fleet.versions('#ab')")
[ "$got" = "1|7" ] || fail "versions: $got"
command_ends 0 "forget" "$fleet" forget --before=1d
got=$(fleet_sql "$judge" "SELECT sum(count) FROM fleet.sum_counts('\\x$folded', 0, $today, 1)")
[ "$got" = 7 ] || fail "forget takes days that it should keep: $got"
command_ends 0 "forget more" "$fleet" forget --before=@$((today * 86400))
got=$(fleet_sql "$judge" "SELECT sum(count) FROM fleet.sum_counts('\\x$folded', 0, $today, 1)")
[ "$got" = 3 ] || fail "forget keeps days: $got"

# ---- two shards: a database whose evidence lies in two other clusters
fleet_shards sharded
command_ends 0 "check with shards" "$fleet" check -d "$SHARDED"
fleet_sql "$SHARDED" "INSERT INTO fleet.host(name) VALUES ('judge'); INSERT INTO fleet.host(name) SELECT 'simulated' || i FROM generate_series(2, 60) i"
fleet_sql "$SHARDED" 'COPY fleet.evidence FROM STDIN' <rows.txt || fail "no rows for the shards"
sed "s/$module/00${module:2}/" rows.txt | fleet_sql "$SHARDED" 'COPY fleet.evidence FROM STDIN'
sharded_judge=${judge/dbname=fleet/dbname=sharded}
by_reader 1 "$sharded_judge" | cmp -s - truth.txt || fail "the sum of shards is not the truth"
by_reader 0.9 >robust.txt
by_reader 0.9 "$sharded_judge" | cmp -s - robust.txt || fail "the robust sum of shards is another one"
nr=0
for shard in s1 s2; do
	port=${shard}_port
	got=$(fleet_sql "host=$dir/$shard port=${!port} user=postgres dbname=postgres" 'SELECT count(DISTINCT module) FROM fleet_shard.evidence')
	nr=$((nr + got))
	echo "$shard: $got modules"
done
[ $nr = 2 ] || fail "the shards have $nr modules, not 2"
# A host pushes to shards as to one cluster, twice.
module=00ff223344556677
sed -i 's/dbname=fleet/dbname=sharded/' k3.conn
fleet_sql "$SHARDED" "INSERT INTO fleet.host(name) VALUES ('k3')"
for seq in 1 2; do
	got=$(send k3 $seq $module 0 5 "$today" $((100 + seq)) "03$(printf %02x $((100 + seq)))" 2>&1)
	[ "$got" = 1 ] || fail "push to shards: $got"
done
[ "$(by_server 1 "$sharded_judge")" = "327680 102" ] || fail "the sum of what was pushed: $(by_server 1 "$sharded_judge")"
finish
