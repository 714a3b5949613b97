#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calling contexts of programs without symbols and frame pointers: roots, sums, the ledger after SIGKILL,
# copies, merging, and every output that shows callers.
. "$(dirname "$0")/../lib.sh"
scratch contexts
need jq python3 sqlite3 perl bash
cc=${CC:-gcc}
need "${cc%% *}"
morphd=$BUILD/morphd
"$morphd" run --stacks --source=perf --db probe.db -- true 2>err || {
	echo "no stacks on this machine: $(head -n 1 err)"
	exit 77
}

ledger() { # DB WHAT
	sqlite3 -readonly "$1" "SELECT coalesce(sum(nr), 0) FROM ledger WHERE what LIKE '$2'"
}

# stacks DB LEAST COMMAND...: sample COMMAND until LEAST samples have contexts
stacks() {
	local db=$1 least=$2
	shift 2
	for _ in {1..40}; do
		"$morphd" run --stacks --source=perf --rate 1000 --db "$db" -- "$@" >sampled.txt 2>err ||
			fail "$1: $(cat err)"
		[ "$(ledger "$db" contexts)" -lt "$least" ] || return 0
	done
	fail "$1: $(ledger "$db" contexts) samples with contexts"
}

# sums DB: all outputs have as many samples as the ledger
sums() {
	local db=$1 nr
	nr=$(ledger "$db" contexts)
	[ "$nr" -gt 0 ] && [ "$nr" -le "$(ledger "$db" 'stacks:%')" ] || fail "$db: $nr samples in trees"
	ends 0 "check $db" status --check --db "$db"
	ends 0 "contexts of $db" query --by=context -p 0 --db "$db" --json
	json "$db: total" ".total_samples == $nr"
	json "$db: own samples" "([.rows[].self_samples] | add) == $nr"
	json "$db: programs" "([.rows[] | select(.path | length == 1) | .samples] | add) == $nr"
	json "$db: new ones are samples" 'all(.rows[]; .certainly_new <= .samples)'
	json "$db: entries lie between their bounds" 'all(.rows[]; .certainly_new <= .entries + 1e-6 and
		.entries <= .entries_most + 1e-6 and .entries_most <= .samples + 1e-6)'
	json "$db: modules without samples are known" 'all(.rows[]; .function != "(unknown module)")'
	json "$db: some functions are entered again and again" 'any(.rows[]; .entries > 0)'
	cp out.txt "$db.json"
	ends 0 "folded of $db" export --format=folded --calls --db "$db"
	[ "$(awk '{ n += $NF } END { print n }' out.txt)" = "$nr" ] || fail "$db: folded stacks"
	ends 0 "speedscope of $db" export --format=speedscope --db "$db"
	python3 - "$nr" <<'PY' || fail "$db: speedscope"
import json, sys
j = json.load(open("out.txt"))
frames = j["shared"]["frames"]
assert j["$schema"].endswith("file-format-schema.json")
assert len({(f["name"], f.get("file")) for f in frames}) == len(frames)
for p in j["profiles"]:
    assert p["type"] == "sampled" and p["unit"] == "nanoseconds"
    assert len(p["samples"]) == len(p["weights"]) and sum(p["weights"]) == p["endValue"]
    assert all(0 <= f < len(frames) for s in p["samples"] for f in s)
assert sum(p["endValue"] for p in j["profiles"]) == int(sys.argv[1]) * 1000000
PY
	ends 0 "pprof of $db" export --format=pprof --calls --db "$db"
	python3 - "$nr" <<'PY' || fail "$db: pprof"
import gzip, sys
data = gzip.open("out.txt").read()
def varint(b, i):
    n = shift = 0
    while True:
        n |= (b[i] & 127) << shift
        shift += 7
        i += 1
        if b[i - 1] < 128:
            return n, i
def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        if key & 7 == 0:
            value, i = varint(b, i)
        else:
            size, i = varint(b, i)
            value, i = b[i:i + size], i + size
        yield key >> 3, value
def numbers(b):
    i = 0
    while i < len(b):
        n, i = varint(b, i)
        yield n
strings, locations, functions, total, deepest = [], set(), set(), 0, 0
for field, value in fields(data):
    if field == 6:
        strings.append(value.decode())
    elif field == 4:
        locations.add(dict(fields(value))[1])
    elif field == 5:
        f = dict(fields(value))
        assert f[2] < len(strings)
        functions.add((strings[f[2]], strings[f.get(4, 0)]))
    elif field == 2:
        sample = dict(fields(value))
        stack, values = list(numbers(sample[1])), list(numbers(sample[2]))
        assert set(stack) <= locations
        total += values[0]
        deepest = max(deepest, len(stack))
assert strings[0] == "" and total == int(sys.argv[1]), total
assert len(functions) == len(locations) and deepest > 5
PY
	ends 0 "flame of $db" flame --calls --db "$db"
	cp out.txt flame.svg
	python3 -c 'import xml.etree.ElementTree as E; E.parse("flame.svg")' || fail "$db: the picture"
	ends 0 "flame of $db" flame --calls --db "$db" --json
	json "$db: the picture's tree" ".tree.samples == $nr and .total_samples == $nr"
}

# rooted DB PROGRAM: nearly all complete stacks begin with the program's _start, and then have main, or in the
# dynamic linker
rooted() {
	local complete begun linker
	complete=$(ledger "$1" 'stacks:complete')
	begun=$(jq "[.rows[] | select(.path[0] == \"$2\" and .path[1] == \"_start\" and (.path | length == 2)) |
		.samples] | add // 0" "$1.json")
	linker=$(jq "[.rows[] | select(.path[0] == \"$2\" and (.path | length == 2) and
		(.path[1] | test(\"^.in ld-linux\")) and (.module | test(\"/ld-linux\"))) | .samples] | add // 0" "$1.json")
	[ $(((begun + linker) * 100)) -ge $((complete * 90)) ] && [ $((begun * 100)) -ge $((complete * 50)) ] ||
		fail "$2: of $complete stacks, $begun begin at _start and $linker in the dynamic linker"
	jq -e "[.rows[] | select(.path[0] == \"$2\" and .function == \"main\" and .path[1] == \"_start\") | .samples] |
		add * 100 >= $begun * 90" "$1.json" >jq.out || fail "$2: no main below _start"
	jq -e 'all(.rows[]; .function != "main" or (.path[-2] | test("libc_start")))' "$1.json" >jq.out ||
		fail "$2: main called by others than libc"
}

# ---- stripped programs of the distribution
stacks perl.db 500 perl -e 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } f(22); my @a = sort { $a <=> $b } map { rand } 1 .. 60000'
sums perl.db
rooted perl.db perl
ends 0 "callers" query --callers=main --db perl.db --json
json "callers of main" '.by == "caller" and ([.rows[].function] | any(test("libc_start")))'
ends 0 "callees" query --callees=Perl_runops_standard --db perl.db
says out.txt 'Perl_pp_' "callees of the interpreter's loop"
ends 3 "callers of nothing" query --callers=no_such_function --db perl.db
ends 2 "both" query --callers=a --callees=b --db perl.db
ends 2 "--by=block" query --callers=a --by=block --db perl.db
ends 2 "--calls" export --format=fdata --calls --db perl.db
ends 3 "another program" query --by=context -m no-such-program --db perl.db
stacks bash.db 300 bash -c 'f() { local i; for i in 1 2 3 4 5 6; do [ $1 -le 0 ] || f $(($1 - 1)); done; }; f 4'
sums bash.db
rooted bash.db bash

# ---- a program whose shares are known, and its copy
$cc -O1 -Wl,--emit-relocs -o calls "$root/tests/data/calls.c" || fail "$cc"
shares() { # DB WHAT: left() has three times as many samples as right(), both below main
	ends 0 "$2" query --callees=outer --db "$1" --json
	json "$2: left and right" '[.rows[] | select(.function == "left").samples][0] as $l |
		[.rows[] | select(.function == "right").samples][0] as $r |
		$l + $r > 0.9 * .total_samples and $l > 2 * $r and $l < 4.5 * $r'
	ends 0 "$2" query --callers=outer --db "$1" --json
	json "$2: main calls outer" '.rows[0].function == "main" and .rows[0].percent > 95'
	json "$2: most calls are seen to be the same, or new" '.rows[0].certainly_new <= .rows[0].samples'
	ends 0 "$2" query --callers=spin --db "$1" --json
	json "$2: spin is called by left and right alone" '([.rows[].function] | sort) == ["left", "right"] and
		.rows[0].function == "left" and .rows[0].percent > 66 and .rows[0].percent < 82'
	ends 0 "$2" query --by=context -p 0 --db "$1" --json
	json "$2: the samples are in spin" '([.rows[] | select(.function == "spin") | .self_samples] | add) >
		0.8 * .total_samples'
	# Its few calls count for nothing beside those of the start, if one of these was sampled.
	ends 0 "$2" calls -p 0 --db "$1" --json
	json "$2: two sites call spin" '[.rows[] | select(.callee.function == "spin") | .caller.function] | sort ==
		["left", "right"]'
	jq '[.rows[] | select(.callee.function == "spin") | [.caller, .callee | .module, .site, .address]] | sort' \
		out.txt >"$1.sites"
}
stacks calls.db 400 ./calls 800
shares calls.db "original"
ends 0 "annotate" annotate --db calls.db --binary=calls spin
says out.txt '^  called by left \[calls\] [0-9.]*%, right \[calls\] ' "annotate"
ends 0 "annotate" annotate --db calls.db --binary=calls --json spin
json "annotate: callers" '.callers[0] | .function == "left" and .percent > 60 and (.module | endswith("/calls"))'
if [ -x "$BUILD/morph-optimize" ]; then
	cp calls.db copy.db
	"$BUILD/morph-optimize" --db copy.db --all --report=json -o faster calls >report.json 2>err || fail "morph-optimize: $(cat err)"
	jq -e '.code.inlined >= 2' report.json >jq.out || fail "copy: $(jq .code.inlined report.json) calls were replaced"
	sqlite3 copy.db "DELETE FROM context; DELETE FROM ledger WHERE what = 'contexts'"
	stacks copy.db 400 ./faster 800
	moved=$("$BUILD/morph-stats" query --by=copy --db copy.db --json | jq '[.rows[] | select(.address != .original) | .samples] | add // 0')
	[ "$moved" -gt 200 ] || fail "copy: $moved samples of moved code"
	ends 0 "check of the copy" status --check --db copy.db
	shares copy.db "copy"
	cmp -s calls.db.sites copy.db.sites || fail "copy: other calls of spin: $(cat copy.db.sites)"
	ends 0 "folded" export --format=folded --calls --db copy.db
	says out.txt ';outer;left;spin ' "folded stacks of the copy"
	# the same from a recording, which has the calls of the map
	cp copy.db made.db # its list has the output, so that nothing has to be confirmed
	"$morphd" run --stacks --source=perf --rate 1000 --db made.db --record made.rec -- ./faster 800 2>err ||
		fail "record: $(cat err)"
	cp copy.db replayed.db
	sqlite3 replayed.db "DELETE FROM context; DELETE FROM ledger WHERE what = 'contexts'"
	"$morphd" --source=replay --input=made.rec --db replayed.db 2>err || fail "replay: $(cat err)"
	ends 0 "replayed" query --callers=spin --db replayed.db --json
	json "replayed: spin's callers" '([.rows[].function] | sort) == ["left", "right"]'
	ends 0 "program of the copy" query --by=context --db copy.db --json
	json "the copy counts for its original" '.rows[0].function == "calls"'
fi

# ---- two databases
cp perl.db sum.db
ends 0 "merge" merge sum.db bash.db
sums sum.db
[ "$(ledger sum.db contexts)" = $(($(ledger perl.db contexts) + $(ledger bash.db contexts))) ] ||
	fail "merge: $(ledger sum.db contexts) samples"

# ---- SIGKILL: what is stored agrees
for i in 1 2 3; do
	"$morphd" run --stacks --source=perf --rate 1000 --interval 0.1 --db killed.db -- ./calls 20000 2>err &
	pid=$!
	awaits '[ "$(ledger killed.db contexts 2>/dev/null || echo 0)" -gt $((i * 50)) ] || ! kill -0 $pid 2>/dev/null'
	child=$(pgrep -P $pid)
	kill -KILL $pid
	wait $pid 2>/dev/null
	# shellcheck disable=SC2086
	[ -z "$child" ] || kill $child 2>/dev/null
	ends 0 "check after SIGKILL" status --check --db killed.db
	[ "$(ledger killed.db contexts)" -gt $((i * 50)) ] || fail "killed: $(ledger killed.db contexts) samples"
done

# ---- without stacks there are no contexts
"$morphd" run --db without.db -- true 2>err
ends 3 "no contexts" query --by=context --db without.db
ends 3 "no contexts" export --format=speedscope --db without.db
ends 3 "no contexts" flame --calls --db without.db
"$BUILD/morphd" run --db without.db -- ./calls 800 >sampled.txt 2>err || fail "calls: $(cat err)"
ends 0 "annotate without contexts" annotate --db without.db --binary=calls --json spin
json "no callers" '.callers == []'
finish
