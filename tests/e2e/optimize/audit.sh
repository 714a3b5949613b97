#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it measures time
# morph-audit: verdicts, exit statuses, equal treatment of both programs, no
# remaining files. The differences in speed are large, so that a busy
# machine cannot hide them.
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}"
scratch audit
mkdir slots
export TMPDIR=$dir/slots

# ends STATUS WHAT ARGS
ends() {
	command_ends "$1" "$2" "$BUILD/morph-audit" --alpha=1e-6 --max-seconds=900 "${@:3}"
	[ -z "$(ls slots)" ] || fail "$2: left behind: $(ls slots)"
}

cat >work.c <<'EOF'
#include <stdio.h>
int main(int argc, char **argv)
{
	unsigned int x = (unsigned int)argc;
	for (long i = 0; i < N; i++)
		x = x * 1664525u + 1013904223u;
	printf("%s %s\n", argv[0], x ? "done" : "zero");
	return STATUS;
}
EOF
build() {
	$cc -O1 -DN="$2" -DSTATUS="${3-0}" -o "$1" work.c || exit 1
}
build quick 2000000
build slow 20000000
build other 2000000 1

ends 5 "a program against itself" --pairs=:20 --indifference=0 quick quick
says out.txt '^not faster'
says out.txt 'same output'
ends 0 "a program with a tenth of the work" slow quick
says out.txt '^faster'
ends 5 "a program with ten times the work" quick slow
says out.txt 'B is slower'
ends 0 "user time" --metric=user slow quick
ends 6 "another exit status" quick other
says out.txt 'exit status 1 instead of exit status 0'
ends 5 "a common exit status that is not 0" --pairs=:10 other other

# Both programs see the same name, length and environment.
cat >self.sh <<'EOF'
#!/bin/sh
echo "$0 $# $*"; env | sort
EOF
cp self.sh self2-with-a-longer-name.sh
chmod +x self*.sh
ends 5 "the same path" --pairs=:10 ./self.sh ./self2-with-a-longer-name.sh -- 'a b' --json --
ends 5 "a name" --pairs=:10 --name=prog --env=X=1 --env=Y= ./self.sh ./self2-with-a-longer-name.sh

# Output: differing, filtered, and varying by itself.
printf '#!/bin/sh\necho took 17 ms; cat\n' >one.sh
printf '#!/bin/sh\necho took 9 ms; cat\n' >two.sh
printf '#!/bin/sh\necho $$ $(date +%%N)\n' >vary.sh
chmod +x one.sh two.sh vary.sh
echo input >input
ends 6 "different output" one.sh two.sh
says out.txt 'stdout: 10 bytes instead of 11'
ends 5 "a filter" --pairs=:10 --stdin=input --filter='tr -d 0-9' one.sh two.sh
says out.txt '(15 bytes)'
ends 1 "output that varies" vary.sh vary.sh
says err.txt 'vary.sh: its runs give different results'
printf '#!/bin/sh\necho $0 a > made\n' >file1.sh
printf '#!/bin/sh\necho $0 b > made\n' >file2.sh
chmod +x file1.sh file2.sh
ends 5 "a file that is not compared" --pairs=:10 file1.sh file2.sh
ends 6 "a file that is compared" --compare-file=made file1.sh file2.sh
[ ! -e made ] || fail "a compared file stays"
printf '#!/bin/sh\necho a >&2\n' >err1.sh
printf '#!/bin/sh\necho b >&2\n' >err2.sh
chmod +x err1.sh err2.sh
ends 5 "stderr is not compared" --pairs=:10 err1.sh err2.sh
ends 6 "stderr is compared" --stderr err1.sh err2.sh

# Programs that cannot be audited.
printf '#!/bin/sh\necho the reason >&2; kill -SEGV $$\n' >crash.sh
printf '#!/bin/sh\nsleep 1000\n' >hang.sh
chmod +x crash.sh hang.sh
ends 1 "A crashes" crash.sh quick
says err.txt 'crash.sh: killed by signal 11.*the reason'
printf '#!/bin/sh\n:\n' >calm.sh
chmod +x calm.sh
ends 6 "B crashes" calm.sh crash.sh
says out.txt 'killed by signal 11'
ends 1 "A hangs" --timeout=0.3 hang.sh quick
ends 6 "B hangs" --timeout=5 calm.sh hang.sh
says out.txt 'did not end in time'
ends 1 "no such program" quick nothing-here
says err.txt 'nothing-here: No such file'
ends 1 "not executable" quick work.c
says err.txt 'work.c: not executable'
ends 1 "a directory" quick slots
ends 1 "no such filter" --filter=/nothing/here quick quick
ends 1 "no such input" --stdin=nothing-here quick quick
ends 2 "one program" quick
ends 2 "three programs" quick quick quick
ends 2 "a bad number" --pairs=:many quick quick
ends 2 "a bad metric" --metric=luck quick quick
ends 2 "--command alone" --command quick quick -- quick
truncate -s 100 torn && chmod +x torn
ends 1 "a torn file" quick torn

# JSON; an audit that fails writes its reason in place of the result.
"$BUILD/morph-audit" --json --export=result.json vary.sh vary.sh >out.txt 2>err.txt
[ $? = 1 ] || fail "output that varies, as JSON: another status"
for json in out.txt result.json; do
	says $json '"error": "vary.sh: its runs give different results (stdout: '
done
if command -v python3 >/dev/null; then
	ends 0 "json" --json slow quick
	python3 - <<'EOF' || fail "json: wrong content"
import json
j = json.load(open("out.txt"))
assert j["verdict"] == "faster" and j["speedup"] > 1, j
assert 1 < j["interval"][0] <= j["speedup"] <= j["interval"][1], j
assert len(j["a"]["times_ns"]) == len(j["b"]["times_ns"]) == j["pairs"] >= 8, j
assert j["difference"] is None, j
# A's first run, and a pair that warms up, unless a watched run did that.
assert j["runs"] == 2 * j["pairs"] + (1 if j["pairs_at_once"] else 3), j
EOF
fi

# The first eight pairs can show a tenth less work, unless one of them is disturbed.
build tenth 22000000
build tenth-less 20000000
"$BUILD/morph-audit" --export=pairs.csv --export=table.md --export=result.json \
	--progress=0.01 tenth tenth-less >out.txt 2>err.txt || fail "a tenth less work: status $?: $(cat out.txt)"
says out.txt '^faster'
says out.txt '99 % interval 1\.'
says err.txt '^morph-audit: [0-9]* s: [0-9]* pairs: B 1\.[0-9]* times as fast'
says table.md '^| B | `tenth-less` | [0-9.]* | [0-9.]* | [0-9.]* | 1\.'
says table.md '^Verdict: faster, by cpu time, after [0-9]* pairs'
says result.json '"verdict": "faster"'
[ "$(wc -l <pairs.csv)" -ge 9 ] || fail "--export: $(cat pairs.csv)"
ends 2 "an export of no kind" --export=pairs tenth tenth-less
ends 1 "an export that cannot be written" --export=no/such/file.csv tenth tenth-less
"$BUILD/morph-audit" --export=-.csv tenth tenth-less >out.txt || fail "--export=-.csv: status $?"
says out.txt '^pair,a_ns,'
"$BUILD/morph-audit" --progress=0 tenth tenth-less 2>err.txt >out.txt || fail "--progress=0: status $?"
[ ! -s err.txt ] || fail "--progress=0: $(cat err.txt)"

# A limit in seconds ends an audit before it can decide; a given minimum of pairs is run anyway.
"$BUILD/morph-audit" --max-seconds=0 --export=one.csv tenth tenth-less >out.txt 2>err.txt
[ $? = 5 ] || fail "--max-seconds=0: status $?"
says out.txt 'within 1 pair, which took the 0 seconds'
says out.txt 'fewer than 8 pairs: allow --pairs=16:500'
[ "$(wc -l <one.csv)" = 2 ] || fail "--max-seconds=0: more than a pair"
ends 5 "pairs, however long they take" --max-seconds=0 --pairs=9:20 --export=nine.csv quick quick
[ "$(wc -l <nine.csv)" = 10 ] || fail "--pairs=9: $(wc -l <nine.csv)"
ends 2 "pairs the wrong way round" --pairs=9:8 quick quick
ends 2 "pairs that are none" --pairs=: quick quick

# --continue adds to the pairs of an earlier audit, and refuses pairs of other programs.
"$BUILD/morph-audit" --continue=one.csv --export=more.csv tenth tenth-less >out.txt 2>err.txt ||
	fail "--continue: status $?: $(cat err.txt)"
says out.txt '1 of them from an earlier audit'
[ "$(sed -n 2p one.csv)" = "$(sed -n 2p more.csv)" ] || fail "--continue: another first pair"
ends 1 "other programs" --continue=one.csv tenth quick
says err.txt 'the pairs in that file were measured with another quick'
ends 1 "another metric" --continue=one.csv --metric=wall tenth tenth-less
ends 1 "pairs enough" --continue=more.csv --pairs=1:2 tenth tenth-less
ends 1 "no pairs" --continue=work.c tenth tenth-less
says err.txt 'work.c: line 1: not in the form that --export writes'

# A library is mounted in its place, where no other process sees the mount.
cat >lib.c <<'EOF'
int work(void);
int work(void)
{
	volatile unsigned int x = 1;
	for (long i = 0; i < N; i++)
		x = x * 1664525u + 1013904223u;
	return VALUE;
}
EOF
echo 'int work(void); int main(void) { return work(); }' >user.c
$cc -O1 -shared -fPIC -DN=5000000 -DVALUE=0 -o slow.so lib.c &&
	$cc -O1 -shared -fPIC -DN=100000 -DVALUE=0 -o quick.so lib.c &&
	$cc -O1 -shared -fPIC -DN=100000 -DVALUE=9 -o wrong.so lib.c &&
	cp slow.so libwork.so &&
	$cc -O1 -o user user.c ./libwork.so || exit 1
if unshare -m true 2>/dev/null || unshare -rm true 2>/dev/null; then
	before=$(cksum libwork.so)
	ends 0 "a library" --at=libwork.so --command slow.so quick.so -- ./user
	ends 6 "a wrong library" --at=libwork.so --command slow.so wrong.so -- ./user
	[ "$(cksum libwork.so)" = "$before" ] || fail "--at changed the file"
	ends 1 "--at nothing" --at=nothing-here --command slow.so quick.so -- ./user
	ends 1 "no such command" --at=libwork.so --command slow.so quick.so -- ./no-user
	says err.txt '^morph-audit: ./no-user: cannot be executed: No such file'
else
	echo "no mount namespaces here: --at is not tested"
fi

# Interrupted: status 1, and no files remain.
"$BUILD/morph-audit" --indifference=0 --pairs=:100000 quick quick >out.txt 2>err.txt &
pid=$!
while [ -z "$(ls slots)" ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid
got=$?
[ $got = 1 ] || fail "interrupted: status $got"
says err.txt interrupted
[ -z "$(ls slots)" ] || fail "interrupted: left behind: $(ls slots)"

"$BUILD/tools/audit-simulate" 20 30 >out.txt || fail "audit-simulate: status $?"
says out.txt '^autocorrelated'
says out.txt '^ *3 % *10 % '
"$BUILD/tools/trial-simulate" 2 20 >out.txt || fail "trial-simulate: status $?"
says out.txt '^second user *lock-step'
"$BUILD/tools/enough-simulate" 100 1 >out.txt || fail "enough-simulate: status $?"
says out.txt '^ *2097152 '

[ $nr_failed = 0 ]
