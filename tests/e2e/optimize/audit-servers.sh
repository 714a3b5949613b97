#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: servers that hang in each phase, a minute
# morph-audit of servers: start, client, CPU time, end; with and without root; servers that fail in
# each phase. No process and no file may stay. Where a test asks for a verdict, B has a hundredth of the work.
. "$(dirname "$0")/../lib.sh"
need python3
here=$root/tests/e2e/optimize
TMPDIR=/tmp # other users reach it
scratch audit-servers
chmod 755 .
mkdir slots
export TMPDIR=$dir/slots
cp "$here/audit-server.py" server
sed 's/WORK", "100000"/WORK", "1000"/' server >quick
chmod +x server quick
cat >client.py <<'END'
"""client.py SOCKET REQUESTS"""
import socket
import sys
for i in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.send(b"x")
    if s.recv(10) != b"done\n":
        sys.exit("no answer")
print(sys.argv[2], "requests")
END
ask="python3 $dir/client.py $dir/s"

nothing_left() {
	[ -z "$(ls slots)" ] || fail "$1: left behind: $(ls slots)"
	# The supervisor of a killed audit needs a moment.
	awaits "! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '$dir/[s] [a-z-]*'" ||
		fail "$1: processes are left"
}

# ends STATUS WHAT OPTION...: the audit of ./server and ./quick, or what PAIR says
PAIR="./server ./quick"
ends() {
	local status=$1 what=$2 mode=$3
	shift 3
	# shellcheck disable=SC2086
	command_ends "$status" "$what" "$audit" --alpha=0.2 --max-seconds=900 --ready="unix:$dir/s" "$@" $PAIR -- \
		"$dir/s" "$mode"
	nothing_left "$what"
}

all_modes() {
	local mode
	for mode in plain daemon forks; do
		ends 0 "$1: $mode" $mode --client="$ask 10"
		says out.txt '^CPU time (user + system) of the server during one run of the client, median'
		says out.txt '^faster$'
	done
	# A client twice as busy: CPU time per request is nearly the same, not half.
	# shellcheck disable=SC2016
	ends 5 "$1: per request" plain --pairs=2:2 --json --client="$ask 20" --requests='/^([0-9]+) requests/'
	json "$1: per request" '.unit == "ns/request" and .server and
		.a.values[0] > 1e5 and .a.values[0] < 1e8 and .a.values[0] > 3 * .b.values[0]'
	ends 5 "$1: the client's time" plain --pairs=2:2 --metric=wall --client="$ask 3"
	says out.txt '^elapsed time of the client during one run of the client'
	ends 5 "$1: user time" plain --pairs=2:2 --metric=user --client="$ask 20"
	says out.txt '^user time of the server during one run of the client'
}
audit=$BUILD/morph-audit
all_modes "$(id -un)"
PAIR="./server ./server" ends 5 "a filter compares" plain --pairs=2:2 --client="$ask 3" --filter=cat
says out.txt 'the same output (11 bytes) and exit status (0)'
# Every form of --ready; the client prints a number.
ends 5 "a command" plain --pairs=2:2 --ready="$ask 1" --metric='/^([0-9]+) requests/' --unit=requests --client="$ask 2"
says out.txt '^  A     2.000  (2.000 to 2.000)  ./server$'
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf '#!/bin/sh\nexec python3 -m http.server --bind 127.0.0.1 %s\n' "$port" >http
chmod +x http
command_ends 5 "python's server" "$audit" --pairs=2:2 --ready=tcp:127.0.0.1:"$port" --metric=wall --filter=cat --client="python3 -c '
import urllib.request
for i in range(10):
    print(len(urllib.request.urlopen(\"http://127.0.0.1:$port/http\").read()))'" ./http ./http
says out.txt 'the same output (30 bytes)'
nothing_left "python's server"

# The same without privileges: the times come from /proc.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	cp "$BUILD/morph-audit" unprivileged-audit
	chmod 777 . slots
	printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all %s "$@"\n' \
		"$dir/unprivileged-audit" >as-nobody
	chmod +x as-nobody
	audit=./as-nobody
	rm -f s
	all_modes nobody
	ends 1 "children that are not counted" discards --client="$ask 3"
	says err.txt 'ignores SIGCHLD, so the kernel does not count its children'
	rm -f s
	audit=$BUILD/morph-audit
else
	echo "skip: not root here: the audits above ran without privileges"
	nr_skipped=$((nr_skipped + 1))
fi

# ---- A fails: status 1; B fails: status 6
cat >calm <<'END'
#!/bin/sh
exec python3 server-as "$1" plain
END
cp server server-as
chmod +x calm
# worse A|B WHAT MODE PATTERN OPTION...: that side runs in this mode
worse() {
	local side=$1 what=$2 mode=$3 pattern=$4
	shift 4
	printf '#!/bin/sh\nexec python3 server-as "$1" %s\n' "$mode" >bad
	chmod +x bad
	if [ "$side" = A ]; then
		PAIR="./bad ./calm" ends 1 "A: $what" - "$@"
		one_line "A: $what"
		says err.txt "$pattern" "A: $what"
	else
		PAIR="./calm ./bad" ends 6 "B: $what" - "$@"
		says out.txt "$pattern" "B: $what"
	fi
}
for side in A B; do
	worse $side "is never ready" never 'the server was not ready within 1 s; it said: waiting for the moon' \
		--timeout=1 --client="$ask 3"
	worse $side "refuses to start" refuses \
		'the server ended before it was ready: exit status 4; it said: no configuration' --client="$ask 3"
	worse $side "dies" dies 'the server ended while the client ran: exit status 3; it said: out of luck' --client="$ask 3"
	worse $side "dies, the client waits" dies 'the server ended while the client ran: exit status 3' \
		--client="$ask 3 || sleep 4321"
	worse $side "leaves a child" leaves 'the server ended while the client ran: killed by signal 11' --client="$ask 3"
done
PAIR="./calm ./calm" ends 1 "the client fails" - --client='echo no >&2; exit 7'
says err.txt '^morph-audit: ./calm: --client: exit status 7; it said: no$'
PAIR="./calm ./calm" ends 1 "the client hangs" - --timeout=1 --client='sleep 4321'
says err.txt '^morph-audit: ./calm: did not end in time$'
PAIR="./calm ./calm" ends 1 "no number" - --client="$ask 3" --requests='/served ([0-9]+)/'
says err.txt 'run 1: nothing in standard output (11 bytes) matches'
PAIR="./calm /bin/true" ends 6 "ends with status 0" - --client="$ask 3"
says out.txt 'the server ended before it was ready: exit status 0'
printf '\177ELF' >torn
chmod +x torn
PAIR="./torn ./calm" ends 1 "cannot be executed" - --client="$ask 3"
says err.txt '^morph-audit: ./torn: cannot be executed'
PAIR="./calm ./calm" ends 1 "something else answers" - --ready=true --client="$ask 3"
says err.txt 'succeeds before the server is started'
PAIR="./calm ./calm" ends 2 "--client alone" - --ready=tcp:nonsense --client=true
command_ends 2 "--ready is missing" "$audit" --client=true ./calm ./calm
printf '#!/bin/sh\nexec python3 server-as "$1" deaf\n' >deaf
chmod +x deaf
PAIR="./deaf ./calm" ends 5 "a server ignores SIGTERM" - --warmup=0 --pairs=1:1 --client="$ask 3"
says out.txt '^  2 times the server did not end after SIGTERM, and was killed$'

# ---- a signal in each phase
# interrupted WHAT SIGNAL MODE READY CLIENT
interrupted() {
	local what=$1 signal=$2 mode=$3 pid
	rm -f begun s
	printf '#!/bin/sh\nexec python3 server-as "$1" %s\n' "$mode" >bad
	"$audit" --ready="$4" --client="$5" ./bad ./bad -- "$dir/s" - >out.txt 2>err.txt &
	pid=$!
	awaits '[ -e begun ]' || fail "$what: it does not begin"
	kill -"$signal" $pid
	if [ "$mode" = stubborn ]; then
		sleep 0.5
		kill -"$signal" $pid
	fi
	wait $pid 2>/dev/null
	if [ "$signal" = KILL ]; then
		rm -rf slots/*
	else
		[ -n "$(grep '^morph-audit: interrupted after ' err.txt)" ] || fail "$what: $(cat err.txt)"
	fi
	nothing_left "$what"
}
interrupted "a signal while it starts" TERM never "echo >begun; false" true
interrupted "a signal while the client runs" INT plain "unix:$dir/s" "echo >begun; sleep 4321"
interrupted "two signals, and a server that ignores SIGTERM" INT stubborn "unix:$dir/s" "echo >begun; sleep 4321"
interrupted "the audit is killed" KILL plain "unix:$dir/s" "echo >begun; sleep 4321"
interrupted "the audit of a daemon is killed" KILL daemon "unix:$dir/s" "echo >begun; sleep 4321"
groups=$(find /sys/fs/cgroup -maxdepth 3 -name 'morph-audit.*' 2>/dev/null | while read -r g; do
	[ -e "/proc/${g##*.}" ] || [ ! -e "$g/cgroup.events" ] || echo "$g"; done)
# Killed audits leave empty groups, which nobody but root could have made.
for group in $groups; do
	grep -q '^populated 0' "$group/cgroup.events" || fail "$group still holds processes"
	rmdir "$group" 2>/dev/null
done

# ---- PostgreSQL, if it is here: a daemon with many processes, which moves its work to children
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
if [ -x "$bin/pgbench" ] && [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 777 .
	user="setpriv --reuid=65534 --regid=65534 --clear-groups"
	$user "$bin/initdb" -D "$dir/data" -A trust -U me >initdb.txt 2>&1 || fail "initdb: $(tail -n 3 initdb.txt)"
	serve="$user $bin/postgres -D $dir/data -k $dir -c listen_addresses= -c fsync=off"
	# shellcheck disable=SC2086
	command_ends 5 "PostgreSQL" "$audit" --at="$bin/postgres" --command --ready="$bin/pg_isready -q -h $dir" --pairs=2:2 \
		--client="$bin/pgbench -i -q -h $dir -U me postgres >/dev/null 2>&1; $bin/pgbench -h $dir -U me -S -t 500 postgres" \
		--requests='/actually processed: ([0-9]+)/' --json "$bin/postgres" "$bin/postgres" -- $serve
	json "PostgreSQL" '.pairs == 2 and .killed_servers == 0 and .unit == "ns/request" and .a.values[0] > 10000'
	nothing_left "PostgreSQL"
	! pgrep -f "^$bin/postgres -D $dir" >/dev/null || fail "PostgreSQL still runs"
else
	echo "skip: no PostgreSQL with pgbench in /usr/lib/postgresql, or not root"
	nr_skipped=$((nr_skipped + 1))
fi
[ $nr_failed = 0 ]
