#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: whole trials of a program that runs all the time take minutes
# morph-worker with `live = yes': a server that is never started again is counted, tried and made faster while it runs, in
# threads and in children, through kills of the worker; morph off leaves the original's code in it, byte for byte. Without
# this key nothing in the process changes.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-running.sh"
manager_scratch live-everyday
# Enough is counted for a meter.
pace=0.05
export STATE_DIRECTORY=$dir/state XDG_STATE_HOME=$dir
gcc -O2 -Wl,--emit-relocs -pthread -o original "$root/tests/e2e/manager/service.c" || exit 1
gcc -O1 -Wl,--emit-relocs -pthread -o newer "$root/tests/e2e/manager/service.c" || exit 1
cp original prog.new && mv prog.new prog
rm -f db db-*
profile prog 12000 work
service=
serve() { # THREADS CHILDREN
	: >serve.txt
	./prog "$@" >serve.txt 2>&1 &
	service=$!
	at_exit 'kill -9 $service $(pgrep -P $service) $worker_pid 2>/dev/null; rm -rf "$dir"'
	awaits 'grep -q ready serve.txt' || fail "the service does not start"
	grows_old
}
processes() {
	echo "$service $(pgrep -P "$service")"
}
ends_right() {
	kill -TERM "$service"
	wait "$service" || fail "$1: the service ended with $?"
	[ "$(cat serve.txt)" = $'ready\ndone' ] || fail "$1: the service says $(cat serve.txt)"
}
versions() { # [PROCESSES]
	# shellcheck disable=SC2046,SC2086
	versions_in ${1:-$(processes)}
}
all_have_text() { # WHAT
	# shellcheck disable=SC2046
	have_text "$1" $(processes)
}

# ---- without the key: only processes that start are counted, and this one does not
live_policy
serve 2 0
begin_work
wait_for advised "no key"
wait "$worker_pid"
all_have_text "no key"
[ "$(db "SELECT verdict FROM history WHERE step = 'counted'")" = "by samples" ] || fail "no key: $(db "SELECT step, reason FROM history")"
ends_right "no key"

# ---- a rule may forbid what the policy permits
forget
live_policy "live = yes"
printf '%s\n' "program = $dir/prog" "live = no" >etc/watch.d/prog.conf
serve 2 0
begin_work
wait_for counting "forbidden"
[ "$(db "SELECT reason FROM history WHERE step = 'count'")" = "a version that counts is put in place at times" ] ||
	fail "forbidden: $(db "SELECT reason FROM history WHERE step = 'count'")"
put_down TERM
all_have_text "forbidden"
ends_right "forbidden"
rm etc/watch.d/prog.conf

# ---- it is too young
forget
cat >young <<'END'
#!/bin/sh
while [ ! -e stop ]; do timeout -s TERM 2 ./prog 1 0; done >/dev/null
END
rm -f stop
sh young &
young=$!
begin_work
wait_for counting "too young"
[ "$(db "SELECT reason FROM history WHERE step = 'count'")" = "a version that counts is put in place at times" ] ||
	fail "too young: $(db "SELECT reason FROM history WHERE step = 'count'")"
put_down TERM
touch stop
wait $young

# ---- a whole round, in threads; the worker is killed while it counts, while it tries, and told to stop
forget
live_policy "live = yes"
serve 2 0
begin_work
wait_for counting "counting"
[ "$(db "SELECT reason FROM history WHERE step = 'count'")" = "a version that counts is put into its running processes at times" ] ||
	fail "counting: $(db "SELECT reason FROM history WHERE step = 'count'")"
awaits '[ "$(versions)" = counting ] || ! kill -0 $worker_pid 2>/dev/null'
put_down KILL
cmp -s prog original || fail "counting: the file was replaced"
begin_work
wait_for trying "trying"
[ "$(db "SELECT verdict FROM history WHERE step = 'counted'")" = done ] ||
	fail "it was not counted: $(db "SELECT reason FROM history WHERE step = 'counted'")"
awaits '[ "$(versions)" = metered-new ] || [ "$(versions)" = metered-original ]' || fail "trying: no version is in use"
put_down TERM
state_is trying "told to stop"
all_have_text "told to stop"
begin_work
awaits '[ "$(versions)" = metered-new ]' || fail "trying: the new version is not in use"
put_down KILL
cmp -s prog original || fail "trying: the file was replaced"

# A process that starts in the middle of a block gets the next block's version.
begin_work
awaits '[ "$(versions)" = metered-new ] || [ "$(versions)" = metered-original ]' || fail "later: no version is in use"
./prog 2 0 >later.txt 2>&1 &
later=$!
awaits 'both=$(versions "$service $later"); [ "${both% *}" = "${both#* }" ] && [ "${both% *}" != "$both" ]' ||
	fail "later: in use is $both"
kill -TERM $later
wait $later || fail "later: the process ended with $?"
[ "$(cat later.txt)" = $'ready\ndone' ] || fail "later: the process says $(cat later.txt)"
wait_for adopted "adopted"
put_down TERM
[ "$(versions)" = output-running ] || fail "adopted: in use is $(versions)"
cmp -s prog state/*/output || fail "adopted: not at the path"
[ "$(db "SELECT verdict FROM history WHERE step = 'live'")" = done ] || fail "adopted: $(db "SELECT reason FROM history WHERE step = 'live'")"
[ "$(db "SELECT verdict FROM history WHERE step = 'tried'")" = faster ] || fail "adopted: $(db "SELECT reason FROM history WHERE step = 'tried'")"

# ---- morph off, with all that the worker knew gone
rm -rf state
m 0 "off" off --policy=etc
says out.txt "^1 running process has the original's code again" "off"
cmp -s prog original || fail "off: not the original"
all_have_text "off"
ends_right "a whole round"

# ---- children have what their parent has; undo of one program. A service of systemd changes processes from outside
forget
live_policy "live = yes"
serve 0 2
mkdir outside
cat >outside/systemd-run <<END
#!/bin/sh
echo "\$*" >>"$dir/asked"
while [ "\$1" != -- ]; do shift; done
shift
exec "\$@"
END
chmod 755 outside/systemd-run
PATH=$dir/outside:$PATH INVOCATION_ID=1 begin_work
wait_for trying "children"
# Blocks are shorter than it takes to ask three processes.
awaits 'kill -STOP $worker_pid; now=$(versions); kill -CONT $worker_pid
	[ "$now" = "metered-new metered-new metered-new" ] || ! sleep 0.4' ||
	fail "children: in use is $now"
says asked '^--quiet --wait --pipe --collect -- .*/morph live --json adopt --counts=' "children"
m 0 "undo" undo "$dir/prog"
awaits "[ \"\$(db 'SELECT state FROM job')\" = undone ]" || fail "undo: $(db 'SELECT state, detail FROM job')"
awaits '[ -z "$(versions)" ]' || fail "undo: in use is $(versions)"
put_down TERM
all_have_text "undo"
ends_right "undo"

# ---- an upgrade while it is tried: the process gets its own original back, and nothing is put over the new file
forget
serve 2 0
begin_work
wait_for trying "upgrade"
awaits '[ "$(versions)" = metered-new ]' || fail "upgrade: in use is $(versions)"
cp newer prog.new && mv prog.new prog
awaits "[ \"\$(db \"SELECT count(*) FROM history WHERE step = 'upgrade'\")\" = 1 ]" || fail "upgrade: not noticed"
awaits '[ -z "$(versions)" ]' || fail "upgrade: in use is $(versions)"
put_down TERM
all_have_text "upgrade"
cmp -s prog newer || fail "upgrade: the new file was replaced"
ends_right "upgrade"

# ---- the service starts again while it is tried
forget
serve 2 0
begin_work
wait_for trying "restart"
awaits '[ "$(versions)" = metered-new ]' || fail "restart: in use is $(versions)"
kill -TERM "$service"
wait "$service"
serve 2 0
awaits '[ "$(versions)" = metered-new ] || ! kill -0 $worker_pid 2>/dev/null'
state_is trying "restart"
put_down TERM
all_have_text "restart"

# ---- somebody else changes the same process all the time, also when the worker is killed. The trial may end meanwhile
outside() {
	while [ ! -e outside.stop ]; do
		"$BUILD/morph" live undo "$service"
		"$BUILD/morph" live adopt "$service" state/*/output-running
	done >/dev/null 2>&1
}
outside &
other=$!
for i in 1 2 3; do
	begin_work
	awaits '[ -n "$(versions)" ] || ! kill -0 $worker_pid 2>/dev/null'
	sleep 0.$i
	put_down KILL
done
touch outside.stop
wait $other
rm outside.stop
kill -0 "$service" || fail "outside: the service ended: $(cat serve.txt)"
"$BUILD/morph" live undo "$service" >/dev/null || fail "outside: undo"
all_have_text "outside"
ends_right "outside"
finish
