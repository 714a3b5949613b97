#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: calling contexts of several hosts, with clients killed on the way
# Calling contexts of a real program on two hosts: the fleet's tree is the sum of theirs, whatever happens on
# the way; morph-stats and morph-optimize use it; what a host sends may be anything.
. "$(dirname "$0")/lib-fleet.sh"
need jq gcc objdump sqlite3
fleet_start
"$fleet" init >/dev/null || exit 1
make_store=$BUILD/tools/contexts-store
[ -x "$make_store" ] || { echo "skip: contexts-store was not built"; exit 77; }
for name in alpha beta; do
	fleet_host $name --reader
	echo $name >$name.id
done
unset MORPH_FLEET
export MORPH_DB=$dir/nowhere.db
conn=$(<alpha.conn)
stats=$BUILD/morph-stats
RANDOM=${SEED:-1}

# ---- a program, and stacks of which it is known how many there are
gcc -O1 -fno-pie -no-pie -Wl,--build-id -Wl,--emit-relocs -o calls "$root/tests/data/calls.c" || exit 1
objdump -d --no-show-raw-insn calls >code.txt
# address FUNCTION: where it begins; return_address FUNCTION CALLEE: of the call there
address() {
	awk -v f="<$1>:" '$2 == f {print $1}' code.txt
}
return_address() {
	awk -v f="<$1>:" -v callee="$2" '/>:$/ {on = $2 == f} on && found {sub(":", "", $1); print $1; exit}
		on && $2 ~ /^call/ && $0 ~ callee {found = 1}' code.txt
}
main=$(return_address main '\*|indirect') left=$(return_address outer '<left>') right=$(return_address outer '<right>')
in_left=$(return_address left '<spin>') in_right=$(return_address right '<spin>') spin=$(address spin)
[ -n "$main" ] && [ -n "$left" ] && [ -n "$right" ] && [ -n "$in_left" ] && [ -n "$in_right" ] || {
	echo "FAIL: no call sites"
	exit 1
}
# stacks LEFT RIGHT: so many samples of spin() by each way
stacks() {
	local i
	for ((i = 0; i < $1; i++)); do
		echo "sample 1 0 $spin c:0:$in_left:1000 c:0:$left:2000 c:0:$main:3000"
	done
	for ((i = 0; i < $2; i++)); do
		echo "sample 1 0 $spin c:0:$in_right:1000 c:0:$right:2000 c:0:$main:3000"
	done
}
# make DB: a store of the stacks on standard input
make() {
	{ echo "module $dir/calls" && cat; } | "$make_store" "$1" || fail "$1 was not made"
}
stacks 900 100 | make alpha.db
stacks 30 270 | make beta.db

# push STATUS WHAT HOST OPTION...
push() {
	command_ends "$1" "$2" "$fleet" push -d "$(<"$3.conn")" --db="$3.db" --machine-id="$3.id" --give-up=0 --json "${@:4}"
}
# pull STATUS WHAT OPTION...: into sum.db
pull() {
	command_ends "$1" "$2" "$fleet" pull -d "$conn" --cap=1 --json "${@:3}"
}
# tree DB: contexts, without numbers that are estimates
tree() {
	"$stats" query --by=context -p 0 --db "$1" --json |
		jq -S '[.rows[] | {path, samples, self_samples, certainly_new}] | sort_by(.path)'
}
# is_truth WHAT DB...: sum.db has the sum of the trees of these stores
is_truth() {
	local db
	for db in "${@:2}"; do tree "$db"; done | jq -S -s 'add | group_by(.path) | map({path: .[0].path,
		samples: map(.samples) | add, self_samples: map(.self_samples) | add, certainly_new: map(.certainly_new) | add})' >truth.json
	tree sum.db >sum.json
	cmp -s sum.json truth.json || fail "$1: $(diff sum.json truth.json | head -n 5)"
	"$stats" status --check --db sum.db >check.txt 2>&1 || fail "$1: $(tail -n 1 check.txt)"
}

# ---- what is sent, and when
push 0 "without contexts" alpha --contexts=no
push 0 "only counts are there" alpha --contexts=no
[ "$(fleet_sql "$ADMIN" "SELECT count(*) FROM fleet.evidence WHERE kind > 1")" = 0 ] || fail "--contexts=no sends contexts"
push 0 "contexts of days that are over" alpha
json "contexts of days that are over" '.rows == 1'
push 0 "a second push" alpha
json "a second push" '.rows == 0'
# Killed again and again, and then sent.
for _ in 1 2 3 4 5 6; do
	"$fleet" push -d "$(<beta.conn)" --db=beta.db --machine-id=beta.id --batch=1 >killed.txt 2>&1 &
	pid=$!
	sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
done 2>/dev/null
push 0 "after kills" beta
pull 0 "the sum" -o sum.db calls
json "the sum" '.modules[0] | .contexts == 1300 and .samples == 1300 and .bad_rows == 0 and .nr_hosts == 2'
is_truth "the sum" alpha.db beta.db
# Days of which stacks come now wait until they are over.
today=$(($(date +%s) / 86400))
cp alpha.db today.db
sqlite3 today.db "UPDATE context SET first_day = $today, last_day = $today; DELETE FROM fleet_bucket WHERE kind = 3"
command_ends 0 "today" "$fleet" push -d "$conn" --db=today.db --machine-id=alpha.id --give-up=0 --json
json "today" '.rows == 0'

# ---- a host that was restored from a backup, and then counts on
cp beta.db backup.db
stacks 0 40 | make more.db
"$stats" merge --again beta.db more.db >/dev/null || fail "merge"
push 0 "before the backup comes back" beta
cp beta.db lost.db
cp backup.db beta.db
rm -f beta.db-wal beta.db-shm
push 0 "the backup" beta
json "the backup" '.nr_epochs == 1 and .rows == 0'
stacks 5 0 | make fewer.db
"$stats" merge --again beta.db fewer.db >/dev/null || fail "merge"
push 0 "the restored host counts on" beta
json "the restored host counts on" '.nr_epochs == 0 and .rows == 2'
pull 0 "with a restored host" -o sum.db calls
is_truth "with a restored host" alpha.db lost.db fewer.db

# ---- the other programs
command_ends 0 "contexts" "$stats" query --fleet="$conn" --binary=calls --by=context -p 0 --json
json "contexts" '.total_samples > 0 and any(.rows[]; .function == "left") and any(.rows[]; .path[-1] == "spin" and .path[-2] == "right")'
command_ends 0 "callers" "$stats" query --db=sum.db --callers=spin --json
json "callers" '[.rows[] | {(.function): .samples}] | add == {left: 935, right: 410}'
command_ends 0 "flame" "$stats" flame --calls --fleet="$conn" --binary=calls --json
json "flame" '.tree.samples > 0 and .tree.samples == .total_samples'
command_ends 0 "the call graph" "$stats" calls --db=sum.db --binary=calls --json
json "the call graph" '[.rows[] | select(.callee.function == "spin") | {(.caller.function): .samples}] | add == {left: 935, right: 410}'
command_ends 0 "morph-optimize" "$BUILD/morph-optimize" --fleet="$conn" --min-samples=1 calls -o from-fleet
pull 0 "the robust sum" --cap=0.9 -o robust.db calls
command_ends 0 "morph-optimize with a store" "$BUILD/morph-optimize" --db=robust.db --min-samples=1 calls -o from-store
cmp from-fleet from-store || fail "the same profile gives another file"

# A function whose address is in data moves only if contexts show that it is called directly.
cat >p.c <<'C'
int work(int);
__asm__(".text\n.p2align 4\n.globl work\n.type work, @function\nwork: .cfi_startproc\n"
	"test $1, %edi\njne 1f\nlea 3(%rdi), %eax\nret\n"
	"1: lea 5(%rdi), %eax\nimul $3, %eax, %eax\nret\n"
	".cfi_endproc\n.size work, . - work\n");
int (*volatile pointer)(int) = work;
int main(int argc, char **argv)
{
	int sum = 0;

	(void)argv;
	for (int i = 0; i < 1000; i++)
		sum += work(2 * i + argc);
	return (sum + pointer(3)) & 1;
}
C
gcc -O2 -Wl,--build-id -o p p.c || exit 1
objdump -d --no-show-raw-insn p >code.txt
next=$(return_address main '<work>') work=$((0x$(address work)))
for offset in 0 6 12 15 18 0; do
	for _ in {1..100}; do printf 'sample 1 0 %x c:0:%s:7ffff000\n' $((work + offset)) "$next"; done
done >p.txt
for name in alpha beta; do
	{ echo "module $dir/p" && cat p.txt; } | "$make_store" p-$name.db || fail "p-$name.db"
	command_ends 0 "p of $name" "$fleet" push -d "$(<$name.conn)" --db=p-$name.db --machine-id=$name.id --give-up=0
done
# moves WHAT OPTION...: does a version move work()?
moves() {
	"$BUILD/morph-optimize" "${@:2}" --min-samples=1 --report=json -o p.out p >p.json 2>p.err || return 1
	./p.out && ! grep -q 'jumps from its old address' p.json p.err
}
moves "with the fleet's contexts" --fleet="$conn" || fail "with the fleet's contexts: $(cat p.err) $(grep why p.json)"
pull 0 "p without contexts" --counts-only -o p-counts.db p
moves "without contexts" --db=p-counts.db && fail "without contexts: work() moved"

# ---- into a store that has contexts of its own, or none
cp beta.db own.db
pull 0 "a store with contexts of its own" --db=own.db calls
says err.txt 'calling contexts of its own' "a store with contexts of its own"
tree own.db >a.json && tree beta.db >b.json
cmp -s a.json b.json || fail "a store with contexts of its own was changed"
"$stats" status --check --db own.db >check.txt 2>&1 || fail "own.db: $(tail -n 1 check.txt)"
for _ in 1 2 3; do pull 0 "a store without contexts" --all-hosts --db=new.db calls; done
cp new.db sum.db
is_truth "three pulls" alpha.db lost.db fewer.db
"$stats" status --check --db new.db >check.txt 2>&1 || fail "new.db: $(tail -n 1 check.txt)"
command_ends 0 "what was pulled is not sent" "$fleet" push -d "$(<beta.conn)" --db=new.db --machine-id=beta.id --give-up=0 --json
json "what was pulled is not sent" '.rows == 0'
pull 0 "counts only" -o only.db --counts-only calls
json "counts only" '.modules[0] | .contexts == 0 and .samples > 0'

# ---- what a host sends may be anything: a row counts as a whole or not at all, and is reported
beta=$(fleet_sql "$ADMIN" "SELECT id FROM fleet.host WHERE name = 'beta'")
fleet_sql "$ADMIN" "CREATE TABLE sound AS SELECT * FROM fleet.evidence" >/dev/null
nr_bad=0
for ((i = 0; i < ${MUTATIONS:-40}; i++)); do
	fleet_sql "$ADMIN" "DELETE FROM fleet.evidence; INSERT INTO fleet.evidence SELECT * FROM sound;
		UPDATE fleet.evidence SET data = set_byte(data, $((RANDOM * 7)) % octet_length(data), $((RANDOM % 256)))
		WHERE host = $beta AND kind = 3" >/dev/null || fail "a mutation"
	command_ends 0 "a mutated row" "$fleet" pull -d "$conn" --cap=1 --json -o mutated.db calls
	read -r contexts bad <<<"$(jq -r '.modules[0] | "\(.contexts) \(.bad_rows)"' out.txt)"
	# beta has three rows of 300 or 340, and 5 samples: each counts or is bad.
	case "$contexts $bad" in
	"1345 0" | "1340 1" | "1005 1" | "1000 2") ;;
	*) fail "a mutated row: $contexts contexts, $bad bad rows" ;;
	esac
	[ "$bad" = 0 ] || says err.txt 'not sound' "a mutated row"
	nr_bad=$((nr_bad + (bad > 0)))
	"$stats" status --check --db mutated.db >check.txt 2>&1 || fail "a mutated row: $(tail -n 1 check.txt)"
	"$stats" query --by=context --db mutated.db >/dev/null 2>&1 || fail "a mutated row cannot be shown"
done
[ "$nr_bad" -gt 0 ] || fail "no mutation was found"
# A total that the tree does not have, a chunk that no tree has, and a tree that is too large.
fleet_sql "$ADMIN" "DELETE FROM fleet.evidence; INSERT INTO fleet.evidence SELECT * FROM sound;
	UPDATE fleet.evidence SET total = total + 1 WHERE host = $beta AND kind = 3 AND total > 10;
	UPDATE fleet.evidence SET chunk = 1 WHERE host = $beta AND kind = 3 AND total <= 10" >/dev/null
command_ends 0 "wrong totals" "$fleet" pull -d "$conn" --cap=1 --json -o mutated.db calls
json "wrong totals" '.modules[0] | .contexts == 1000 and .bad_rows == 2'
fleet_sql "$ADMIN" "UPDATE fleet.evidence SET data = data || repeat('x', 70000)::bytea WHERE host = $beta AND kind = 3" >/dev/null
command_ends 0 "a large row" "$fleet" pull -d "$conn" --cap=1 --json -o mutated.db calls
json "a large row" '.modules[0] | .contexts == 1000 and .bad_rows == 2'
echo "$nr_bad of ${MUTATIONS:-40} mutations were found"
[ $nr_failed = 0 ]
