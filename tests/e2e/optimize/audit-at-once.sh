#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: it measures time alone
# alone: it measures time
# morph-audit: both runs of a pair at the same time. Which commands that is done for, that nothing is
# left behind, and that a difference which comes from running twice is no difference of the programs.
. "$(dirname "$0")/../lib.sh"
cc=${CC:-gcc}
need "${cc%% *}"
need jq
scratch at-once
mkdir slots
export TMPDIR=$dir/slots
unshare -m true 2>/dev/null || unshare -rm true 2>/dev/null || {
	echo "skip: no mount namespaces here"
	exit 77
}

# audited STATUS WHAT ARGS: as JSON in out.txt
audited() {
	command_ends "$1" "$2" "$BUILD/morph-audit" --json --alpha=1e-4 --max-seconds=900 "${@:3}"
	[ -z "$(ls slots)" ] || fail "$2: left behind: $(ls slots)"
}
# has FILTER: the JSON is so
has() { jq -e "$1" out.txt >/dev/null || fail "not $1: $(jq -c 'del(.a, .b)' out.txt)"; }
at_once='.pairs_at_once == .pairs and .turns_because == null'
in_turns() { has ".pairs_at_once == 0 and (.turns_because | test(\"$1\"))"; }

cat >work.c <<'EOF'
#include <stdio.h>
int main(int argc, char **argv)
{
	unsigned int x = (unsigned int)argc;
	for (long i = 0; i < N; i++)
		x = x * 1664525u + 1013904223u;
	printf("%s %s\n", argv[0], x ? "done" : "zero");
	return 0;
}
EOF
$cc -O1 -DN=22000000 -o tenth work.c && $cc -O1 -DN=20000000 -o less work.c &&
	$cc -O1 -DN=20000000 -o threaded -xc - -pthread <<'EOF' || exit 1
#include <pthread.h>
#include <stdio.h>
static void *idle(void *arg) { return arg; }
int main(void)
{
	pthread_t t;
	return pthread_create(&t, NULL, idle, NULL) || pthread_join(t, NULL);
}
EOF

# The programs see one path, and the faster one is found.
audited 0 "a tenth less work" ./tenth ./less
has "$at_once and .verdict == \"faster\" and .pairs >= 8"
audited 5 "the other way round" ./less ./tenth
has "$at_once and .verdict == \"slower\""
audited 0 "a whole command" --at=./tenth --command ./tenth ./less -- sh -c './tenth | tr a-z A-Z'
has "$at_once"
audited 0 "in turns, as asked" --pairing=turns ./tenth ./less
has '.pairs_at_once == 0 and .turns_because == null'
# Too few pairs for a verdict: this is about how they are made.
few=(--pairs=3:3)
audited 5 "wall time" "${few[@]}" --metric=wall ./tenth ./less
in_turns 'only CPU time'
command_ends 2 "another pairing" "$BUILD/morph-audit" --pairing=some ./tenth ./less

# Another output is found, and it is no doubt about running twice.
printf '#!/bin/sh\necho one\n' >one.sh
printf '#!/bin/sh\necho two\n' >two.sh
chmod +x one.sh two.sh
audited 6 "another output" ./one.sh ./two.sh
has '.verdict == "output differs"'

# Commands that must not run twice at the same time.
printf '#!/bin/sh\necho a >made\n' >writes.sh
printf '#!/bin/sh\necho a >/dev/tcp/127.0.0.1/9 2>/dev/null\n' | sed 's/bin.sh/bin\/bash/' >talks.sh
chmod +x writes.sh talks.sh
audited 5 "a file is written" "${few[@]}" ./writes.sh ./writes.sh
in_turns "it changes the file $dir/made"
audited 5 "a server is asked" "${few[@]}" --stderr ./talks.sh ./talks.sh
in_turns 'it talks to a server'
audited 5 "threads" "${few[@]}" ./threaded ./threaded
in_turns 'it has several threads'
audited 5 "files that are compared" "${few[@]}" --compare-file=made ./writes.sh ./writes.sh
in_turns 'both write the files'
audited 5 "prepared" "${few[@]}" --prepare=: ./one.sh ./one.sh
in_turns 'prepares one run'

# A lock on a file that is only read is not seen by watching: the runs then behave otherwise, and the
# audit goes on in turns.
printf '#!/bin/bash\nexec 9<%s; flock -n 9 || { echo locked; exit; }; read -t 0.3 <> <(:); echo free\n' \
	"$dir/work.c" >locks.sh
chmod +x locks.sh
audited 5 "a lock" "${few[@]}" ./locks.sh ./locks.sh
in_turns 'at the same time, a run behaves otherwise'

# Without the right to mount, runs are made in turns.
cat >limited <<'EOF'
#!/bin/sh
echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"
EOF
chmod +x limited
within=(unshare -r ./limited)
if "${within[@]}" sh -c '! unshare -m true' 2>/dev/null; then
	command_ends 5 "no namespaces" "${within[@]}" "$BUILD/morph-audit" --json "${few[@]}" ./one.sh ./one.sh
	in_turns 'no mount namespace'
fi

# Interrupted or killed while both run: no process stays, and no file unless it was killed.
cat >long.sh <<'EOF'
#!/bin/sh
echo a; exec sleep 1.7345
EOF
chmod +x long.sh
stopped() {
	"$BUILD/morph-audit" --pairs=1000:1000 ./long.sh ./long.sh >out.txt 2>err.txt &
	pid=$!
	for ((i = 0; i < 300; i++)); do
		[ "$(pgrep -cf 'sleep 1.7345')" -lt 2 ] || break
		sleep 0.1
	done
	[ "$(pgrep -cf 'sleep 1.7345')" = 2 ] || fail "$1: the two runs do not go on at the same time"
	kill "-$1" $pid
	wait $pid 2>/dev/null
	awaits '! pgrep -f "sleep 1.7345" >/dev/null' || fail "$1: a run goes on"
}
stopped INT
[ -z "$(ls slots)" ] || fail "INT: left behind: $(ls slots)"
stopped KILL
rm -rf slots/*
finish
