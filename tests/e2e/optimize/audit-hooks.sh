#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# morph-audit: the user's commands around the runs, numbers of the output as the metric, pictures.
. "$(dirname "$0")/../lib.sh"
need python3
scratch audit-hooks
mkdir slots
export TMPDIR=$dir/slots

# ends STATUS WHAT ARGS
ends() {
	command_ends "$1" "$2" "$BUILD/morph-audit" "${@:3}"
	[ -z "$(ls slots)" ] || fail "$2: left behind: $(ls slots)"
}

# is FILE TEXT WHAT
is() {
	[ "$(cat "$1" 2>/dev/null)" = "$2" ] || fail "$3: $1 holds $(cat "$1" 2>&1)"
}

# Two programs that print numbers: B's is twice A's.
printf '#!/bin/sh\necho "rate 100 of 7"; echo "time 3e2" >&2; echo run >>log\n' >a.sh
printf '#!/bin/sh\necho "rate 200 of 7"; echo "time 6e2" >&2; echo run >>log\n' >b.sh
chmod +x a.sh b.sh

# ---- hooks: how often, in which order, with which variables
# shellcheck disable=SC2016
ends 5 "hooks" --pairs=2:2 --setup='echo setup >log' --teardown='echo teardown >>log' \
	--prepare='echo $MORPH_AUDIT_SIDE $MORPH_AUDIT_PROGRAM >>log' --filter='cat >/dev/null' a.sh b.sh
[ "$(head -n 1 log)" = setup ] && [ "$(tail -n 1 log)" = teardown ] || fail "order of hooks: $(cat log)"
[ "$(grep -c '^run$' log)" = 7 ] || fail "runs: $(cat log)"
[ "$(grep -c '^A a.sh$' log)" = 4 ] && [ "$(grep -c '^B b.sh$' log)" = 3 ] || fail "sides: $(cat log)"
sed '1d;$d' log | paste -d' ' - - | grep -qv '^[AB] [ab].sh run$' && fail "each run has its prepare: $(cat log)"
# The programs see nothing of it.
printf '#!/bin/sh\nenv | grep MORPH_AUDIT; exit 0\n' >env.sh
chmod +x env.sh
ends 5 "no side in the environment" --pairs=1:1 --prepare=true env.sh env.sh
says out.txt '(0 bytes)'
# What hooks print stays out of the result.
ends 5 "hooks print" --json --pairs=1:1 --setup='echo noise' env.sh env.sh
json "hooks print" '.verdict == "undecided"'
says err.txt '^noise$'

# A hook that fails ends the audit; teardown comes nevertheless.
rm -f log
ends 1 "setup fails" --setup='exit 3' --teardown='echo down >log' a.sh b.sh
one_line "setup fails"
says err.txt '^morph-audit: --setup: exit status 3: exit 3$'
is log down "setup fails"
# shellcheck disable=SC2016
ends 1 "prepare fails" --prepare='[ $MORPH_AUDIT_SIDE = A ]' --teardown='echo down >log' a.sh a.sh
one_line "prepare fails"
says err.txt '^morph-audit: --prepare before B: exit status 1: '
is log down "prepare fails"
ends 1 "teardown fails" --pairs=2:2 --export=pairs.csv --teardown='kill -9 $$' env.sh env.sh
one_line "teardown fails"
says err.txt '^morph-audit: --teardown: killed by signal 9'
[ "$(wc -l <pairs.csv)" = 3 ] || fail "teardown fails: the pairs are lost"
ends 1 "a program fails" --teardown='echo again >log' --setup='rm log' ./nothing-here a.sh
is log again "a program fails"
ends 6 "teardown after a difference" --teardown='echo more >log' /bin/true /bin/false
is log more "teardown after a difference"

# A signal in each phase: status 1, teardown, no process left.
# interrupted WHAT OPTION...
interrupted() {
	local what=$1 pid
	shift
	rm -f begun ended
	"$BUILD/morph-audit" --teardown='echo ended >ended' "$@" /bin/true /bin/true >out.txt 2>err.txt &
	pid=$!
	awaits '[ -e begun ]' || fail "$what: it does not begin"
	kill -TERM $pid
	wait $pid
	[ $? = 1 ] || fail "$what: status"
	says err.txt '^morph-audit: interrupted after ' "$what"
	is ended ended "$what"
	[ -z "$(ls slots)" ] || fail "$what: left behind: $(ls slots)"
	! grep -sqx 'sleep.4321.' <(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '.') || fail "$what: a process is left"
}
interrupted "a signal in setup" --setup='echo >begun; sleep 4321'
interrupted "a signal in prepare" --prepare='echo >begun; sleep 4321'
interrupted "a signal between" --prepare='echo >begun' --pairs=1000000:1000000 --indifference=0

# ---- a metric of the output
ends 0 "a rate" --metric='/rate ([0-9]+)/' --unit=jobs/s a.sh b.sh
says out.txt '^/rate (\[0-9\]+)/ in jobs/s (higher is better) of one run, median'
says out.txt 'B is 2.0000 times as good as A'
says out.txt 'the output was not compared, since there is no --filter'
says out.txt '^better$'
ends 5 "a rate, the other way" --metric='/rate ([0-9]+)/' b.sh a.sh
says out.txt '^not better: B is worse$'
ends 5 "a cost" --metric='stderr:/^time ([0-9e]+)$/' --better=lower a.sh b.sh
says out.txt 'B is 0.5000 times as good as A'
ends 6 "a metric with a filter" --metric='/rate ([0-9]+)/' --filter=cat a.sh b.sh
says out.txt 'stdout: 14 bytes, but different ones'
ends 0 "a metric before the filter" --metric='/rate ([0-9]+)/' --filter='sed s/rate.*of//' a.sh b.sh
says out.txt 'the same output (3 bytes)'
ends 5 "time per request" --pairs=2:2 --requests='/of (7)$/' --filter=true a.sh b.sh
says out.txt '^CPU time (user + system) per request, median'
ends 0 "json of a metric" --json --metric='/rate ([0-9]+)/' --unit='<jobs>' a.sh b.sh
json "json of a metric" '.unit == "<jobs>" and .metric == "/rate ([0-9]+)/" and .better == "higher" and
	.a.median == 100 and .b.values[0] == 200 and .speedup == 2 and (.a | has("times_ns") | not) and
	.output_compared == false and .server == false'
ends 5 "json of a time" --json --pairs=1:1 a.sh a.sh
json "json of a time" '.unit == "ns" and .better == "lower" and .a.times_ns == .a.values and .a.median == .a.median_ns'

# Numbers that are none.
# number TEXT PATTERN
number() {
	printf '#!/bin/sh\necho "rate %s"\n' "$1" >bad.sh
	chmod +x bad.sh
	ends 1 "the number '$1'" --metric='/rate ?(.*)/' bad.sh b.sh
	one_line "the number '$1'"
	says err.txt "^morph-audit: bad.sh: run 1: /rate ?(\.\*)/: '.*' is $2"
}
number 0 'not above 0'
number -5 'not above 0'
number nan 'not a number'
number inf 'not a number'
number 0x10 'not a number'
number 1,5 'not a number'
number '' 'not a number'
number 1e308 'not from 1e-100 to 1e+100'
number 1e999 'not from 1e-100 to 1e+100'
number 1e-300 'not from 1e-100 to 1e+100'
ends 1 "no match" --metric='/speed ([0-9]+)/' a.sh b.sh
says err.txt 'a.sh: run 1: nothing in standard output (14 bytes) matches /speed'
printf '#!/bin/sh\necho run >>count; [ $(wc -l <count) -ge 5 ] || echo rate 5\n' >once.sh
chmod +x once.sh
ends 1 "a number missing in one run" --metric='/rate ([0-9]+)/' once.sh once.sh
says err.txt 'once.sh: run 5: nothing in standard output (0 bytes) matches'
printf '#!/bin/sh\nhead -c 17000000 /dev/zero; echo rate 5\n' >much.sh
chmod +x much.sh
ends 1 "much output" --metric='/rate ([0-9]+)/' much.sh much.sh
says err.txt 'more than 16 MiB of output'
printf '#!/bin/sh\nprintf "x\\0y\\nrate 5\\n"\n' >zero.sh
chmod +x zero.sh
ends 5 "a zero byte before the number" --pairs=1:1 --metric='/^rate ([0-9]+)$/' zero.sh zero.sh

# Wrong usage.
ends 2 "no group" --metric='/rate/' a.sh b.sh
ends 2 "no expression" --metric='/rate (/' a.sh b.sh
ends 2 "no slashes" --metric='rate (.)' a.sh b.sh
ends 2 "a direction for a time" --better=lower a.sh b.sh
ends 2 "no direction" --metric='/(.)/' --better=left a.sh b.sh
ends 2 "a unit for a time" --unit=s a.sh b.sh
ends 2 "requests of a number" --metric='/(.)/' --requests='/(.)/' a.sh b.sh

# ---- exports and --continue know the unit
ends 0 "exports" --metric='/rate ([0-9]{1,3})/' --unit='jobs, "all"' --export=pairs.csv \
	--export=table.md --export=picture.svg --plot a.sh b.sh
says pairs.csv '^pair,a,b,speedup,metric,a_hash,b_hash,unit$'
says pairs.csv '^1,100,200,2.000000,"/rate (\[0-9\]{1,3})/",[0-9a-f]*,[0-9a-f]*,"jobs, ""all"""$'
says table.md '| Median \[jobs, "all"\] |'
says table.md 'by `/rate (\[0-9\]{1,3})/`, after'
says out.txt '^  A  *█ *$'
says out.txt '●'
ends 0 "continue" --continue=pairs.csv --metric='/rate ([0-9]{1,3})/' --unit='jobs, "all"' --pairs=10:20 a.sh b.sh
says out.txt '8 of them from an earlier audit'
ends 1 "continue another metric" --continue=pairs.csv --metric='/rate ([0-9]+)/' --unit='jobs, "all"' a.sh b.sh
ends 1 "continue another unit" --continue=pairs.csv --metric='/rate ([0-9]{1,3})/' --unit=jobs a.sh b.sh
says err.txt 'another --metric or in another unit'
ends 1 "continue as time" --continue=pairs.csv a.sh b.sh

# ---- the picture is well-formed, and says what it shows
printf '#!/bin/sh\necho rate 3\n' >'a<&">.sh'
chmod +x 'a<&">.sh'
ends 5 "picture" --pairs=2:3 --metric='/rate ([0-9]<?)/' --unit='<&">' --export=odd.svg 'a<&">.sh' 'a<&">.sh'
ends 6 "picture without pairs" --export=none.svg /bin/true /bin/false
python3 - picture.svg odd.svg none.svg <<'END' || fail "pictures"
import sys
import xml.etree.ElementTree as tree
S = "{http://www.w3.org/2000/svg}"
for path in sys.argv[1:]:
    root = tree.parse(path).getroot()
    words = " ".join(t.text or "" for t in root.iter(S + "text"))
    assert root.get("role") == "img" and root.find(S + "title").text and root.find(S + "desc").text, path
    circles = len(list(root.iter(S + "circle")))
    if path == "none.svg":
        assert circles == 0 and "No pairs were measured" in words, words
        continue
    assert "99 % interval" in words and "(higher is better)" in words, words
    assert circles == {"picture.svg": 8 * 3, "odd.svg": 3 * 3}[path], circles
    assert 'a<&">.sh' in words or path != "odd.svg", words
    for e in root.iter():
        for k, v in e.attrib.items():
            assert "nan" not in v and "inf" not in v, (k, v)
END
# No room: one message.
if [ -w /dev/full ]; then
	ln -s /dev/full full.svg
	ends 1 "a full disk" --export=full.svg --metric='/rate ([0-9]+)/' a.sh b.sh
	says err.txt '^morph-audit: full.svg: No space left on device$'
fi
[ $nr_failed = 0 ]
