#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-worker: a program in which the first samples showed nothing to move is tried again when it has twice as
# many samples, and not before; so is one whose functions seemed to be entered too often for an audit. Other
# refusals stay, and a program that a command trains is tried again after the time `retry`.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch more-samples
speed 120
rm -f db db-*
policy "min-samples = 100"
rule "mode = adopt" "$(by_speed)"
nothing="ask:watch profile:done write:nothing"
whole="profile:done write:done verify:done audit:faster adopt:done"

# explained PATTERN WHAT: what `morph explain' says, in one line
explained() {
	"$BUILD/morph" --db=db explain "$dir/prog" 2>err.txt | tr '\n' ' ' >line.txt
	says line.txt "$1" "$2"
}
# again_is NUMBER WHAT: rounds that began because there were more samples
again_is() {
	local now
	now=$(db "SELECT count(*) FROM history WHERE step = 'again'")
	[ "$now" = "$1" ] || fail "$2: tried again $now times, not $1"
}

# ---- all samples lie in code that stays where it is
profile prog 150 _start
work 0 "nothing" --now
state_is refused "nothing"
history_is "$nothing" "nothing"
explained 'By its samples so far, there was nothing to move in it. .*it has 150 samples, and is tried again when it has 300' \
	"nothing"
"$BUILD/morph" --db=db >out.txt
says out.txt 'prog .*nothing to move yet' "the page"
grep -q '^Failed' out.txt && fail "the page calls it failed: $(cat out.txt)"
work 0 "the same samples" --now
profile prog 149 hot
work 0 "one sample less than twice as many" --now
state_is refused "one sample less than twice as many"
history_is "$nothing" "one sample less than twice as many"
profile prog 1 hot
work 0 "twice as many" --now
state_is adopted "twice as many"
history_is "$nothing again:changed $whole" "twice as many"
cmp -s prog original && fail "twice as many: the original is there"
[ "$(db "SELECT reason FROM history WHERE step = 'again'")" = \
	"there was nothing to move; now it has 300 samples, at least 2 times as many" ] ||
	fail "twice as many: $(db "SELECT reason FROM history WHERE step = 'again'")"

# ---- the same result doubles what the next try needs: the tries cannot loop
forget
rm -f db db-*
for n in 100 99 1 199 1; do
	profile prog $n _start
	work 0 "$n more samples of nothing" --now
	state_is refused "$n more samples of nothing"
done
again_is 2 "400 samples of nothing"
explained 'it has 400 samples, and is tried again when it has 800' "400 samples of nothing"

# ---- a store of an older Morph does not tell with how many samples a round was tried
db "UPDATE job SET before_samples = 0"
profile prog 200 hot
work 0 "an older store" --now
state_is adopted "an older store"

# ---- a file that the policy forbids stays refused, with any number of samples
forget
policy "min-samples = 100" "exclude = $dir/pr*"
work 0 "excluded" --now
state_is refused "excluded"
profile prog 5000 hot
work 0 "excluded, many samples" --now
state_is refused "excluded, many samples"
history_is "ask:watch profile:refused" "excluded, many samples"
explained 'Morph refuses to optimise or to replace it' "excluded, many samples"

# ---- an audit inside the program: few samples, all at the entry, look like a function that is entered all the time
forget
rm -f db db-*
policy "min-samples = 20" "retry = 1d"
rule "mode = adopt" "instrument = yes" "audit-time = 3s"
# import_at SAMPLES ADDRESS...: samples of prog, in turns at these addresses
import_at() {
	local nr=$1 i
	shift
	{
		readelf -lW prog | awk -v file="$dir/prog" '$1 == "LOAD" && / R E / {
			printf "p 7/7 1.0: PERF_RECORD_MMAP2 7/7: [%s(%s) @ %s 00:00 0 0]: r-xp %s\n", $3, $5, $2, file }'
		for ((i = 1; i <= nr; i++)); do
			echo "p 7/7 1.1: cycles:u: ${*:i % $# + 1:1} f ($dir/prog)"
		done
	} >perf.text
	"$BUILD/morph-stats" --db db import perf.text >/dev/null || fail "import"
}
code=$(objdump -d --no-show-raw-insn --disassemble=hot original | awk '/^ +[0-9a-f]+:/ { sub(":", "", $1); print $1, $2 }')
entry=$(head -n 1 <<<"$code" | cut -d' ' -f1)
# The loop: from the first call to the last conditional jump.
mapfile -t loop < <(awk '$2 == "call" { in_loop = 1 } in_loop { held = held $1 "\n" } $2 ~ /^j[^m]/ { printf "%s", held; held = "" }' <<<"$code")
import_at 20 "$entry"
work 0 "entered too often" --now
state_is refused "entered too often"
says err.txt 'no function can be audited' "entered too often"
history_is "$nothing" "entered too often"
import_at 12000 "${loop[@]}"
work 0 "not entered so often" --now
case $(db "SELECT state FROM job") in
refused) fail "not entered so often: $(db 'SELECT detail FROM job')" ;;
esac
[[ $(db "SELECT group_concat(step || ':' || verdict, ' ') FROM (SELECT * FROM history ORDER BY key)") == \
	"$nothing again:changed profile:done write:done verify:done"* ]] || fail "not entered so often: $(db 'SELECT detail FROM job')"

# ---- a command that does not run the program trains nothing: time decides, since the store's samples do not
forget
"$BUILD/morphd" run --record probe -- true 2>err.txt || {
	echo "skip: training: $(head -n 1 err.txt)"
	left_out=" training"
	finish
}
policy "retry = 1d"
rule "mode = adopt" "train = /bin/true" "command = $dir/speed"
work 0 "trained with nothing" --now
state_is refused "trained with nothing"
history_is "ask:watch profile:train write:nothing" "trained with nothing"
explained 'it is trained again after the time `retry' "trained with nothing"
profile prog 50000 hot
work 0 "trained with nothing, again" --now
history_is "ask:watch profile:train write:nothing" "trained with nothing, again"
sleep 2
policy "retry = 1s"
rule "mode = adopt" "train = $dir/prog 300000000" "command = $dir/speed"
work 0 "trained later" --now
[ "$(db "SELECT count(*) FROM history WHERE step = 'again'")" = 1 ] || fail "trained later: not tried again"
[ "$(db "SELECT max(round) FROM history WHERE step = 'write' AND verdict = 'done'")" = 2 ] ||
	fail "trained later: $(db 'SELECT detail FROM job')"
finish
