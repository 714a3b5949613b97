#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A host refuses a build that somebody changed. Of MUTATIONS changes, one third are of the stored delta alone; the
# others are of the output, with a delta and hashes that fit the changed output, so that only the verifier is
# left. What a host accepts may differ only in bytes that no segment loads, or in unwind tables with the same rows
# (a no-op at the end of an entry may be another instruction without effect). SEED: number of the first change.
. "$(dirname "$0")/lib-builds.sh"
builds_start
nr=${MUTATIONS:-60}
first=${SEED:-1}
delta=$BUILD/tools/fleet-delta
request 0 "a build" prog
build 0 "a build" maker
cp prog alpha/prog
install 0 "the build" alpha -o output alpha/prog
size=$(fleet_sql "$ADMIN" 'SELECT octet_length(delta) FROM fleet.build')
fleet_sql "$ADMIN" 'CREATE TABLE public.kept AS SELECT delta, output_size, output_hash FROM fleet.build'
back="UPDATE fleet.build b SET delta = k.delta, output_size = k.output_size, output_hash = k.output_hash FROM public.kept k;"

# ask: installs into a file. Return: the exit status
ask() {
	rm -f got
	install_as alpha -o got alpha/prog >out.txt 2>err.txt
}

declare -A what=([refused]=0 [same]=0 [unloaded]=0 [unwind]=0 [data]=0 [code]=0 [failed]=0)
# rows FILE: the unwind rows of each entry; a row with the rules of the one before is no new row
rows() {
	readelf --debug-dump=frames-interp "$1" 2>/dev/null | awk '
		function row(at, rules) { if (rules != last) print at, rules; last = rules }
		function end_entry() { if (entry && !nr) row(start, first[cie]); entry = 0 }
		/ (CIE|FDE) / || /^Contents/ { end_entry() }
		/ CIE / { cie = $1 }
		/ FDE / {
			match($0, /cie=[0-9a-f]+/); cie = substr($0, RSTART + 4, RLENGTH - 4)
			match($0, /pc=[0-9a-f.]+/); print substr($0, RSTART, RLENGTH); start = substr($0, RSTART + 3, 16)
			entry = 1; nr = 0; last = ""
		}
		/^ +LOC / { split($0, name) }
		/^[0-9a-f]+ / && !/ (CIE|FDE) / && !/ZERO/ {
			rules = ""
			for (i = 2; i <= NF; i++) if ($i != "u") rules = rules " " name[i] "=" $i
			if (!entry) first[cie] = rules
			else { nr++; row($1, rules) }
		}
		END { end_entry() }'
}
# judge STATUS FILE: counts what the host did with a build that should be FILE
judge() {
	local how
	case $1 in
	4) how=refused ;;
	0) how=$("$delta" compare output got) ;;
	*) how=failed ;;
	esac
	what[$how]=$((${what[$how]} + 1))
	case $how in
	code | data) fail "accepted with changed $how: $2" ;;
	unwind) [ "$(rows output)" = "$(rows got)" ] || fail "accepted with other unwind rows: $2" ;;
	failed) fail "status $1: $2: $(cat err.txt)" ;;
	esac
	[ $how = refused ] || echo "accepted, $how: $2"
}

nr_delta=$((nr / 3))
for ((i = 0; i < nr_delta; i++)); do
	RANDOM=$((first + i))
	at=$(((RANDOM * 32768 + RANDOM) % size))
	by=$((1 + RANDOM % 255))
	case $((i % 4)) in
	# One byte; cut short; longer; a byte and the first bytes of the frame
	0 | 1) sql="UPDATE fleet.build SET delta = set_byte(delta, $at, get_byte(delta, $at) # $by)" change="byte $at xor $by" ;;
	2) sql="UPDATE fleet.build SET delta = substr(delta, 1, greatest($at, 1))" change="cut at $at" ;;
	3) sql="UPDATE fleet.build SET delta = delta || substr(delta, $at + 1, 40)" change="longer by 40 bytes of $at" ;;
	esac
	fleet_sql "$ADMIN" "$back $sql" || fail "not stored"
	ask
	judge $? "the delta: $change"
done
echo "$nr_delta changes of the delta: ${what[refused]} refused, ${what[same]} gave the same output"

for ((i = 0; i < nr - nr_delta; i++)); do
	change=$("$delta" mutate output $((first + i)) mutant) && "$delta" make prog mutant forged.delta || fail "no mutant"
	psql -X -q -v ON_ERROR_STOP=1 -d "$ADMIN" <<SQL || fail "not stored"
UPDATE fleet.build SET output_size = $(stat -c %s mutant), output_hash = '\x$(sha256sum mutant | cut -c1-64)',
	delta = '\x$(od -An -v -tx1 forged.delta | tr -d ' \n')';
SQL
	ask
	judge $? "the output: $change"
done
echo "$nr changes: ${what[refused]} refused; accepted: ${what[same]} with the same bytes, ${what[unloaded]} that differ in bytes that are not loaded, ${what[unwind]} in unwind tables with the same rows, ${what[data]} in data, ${what[code]} in code"
[ $((what[refused] * 10)) -ge $((nr * 7)) ] || fail "only ${what[refused]} of $nr were refused: do the changes reach the verifier?"
# The build as it was is still good.
fleet_sql "$ADMIN" "$back"
ask || fail "the build as it was: $(cat err.txt)"
cmp output got || fail "the build as it was gives another output"
is_original alpha "all of these"
finish
