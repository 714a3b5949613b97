#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: whole trials of a library that runs all the time take minutes
# morph-worker with `live = yes': a library that servers of one program have loaded is counted, tried and made faster in
# these processes; the CPU time and the crashes are those of the program. If that is replaced meanwhile, the trial ends. Where
# several programs have loaded it, or without the key, it is only advised.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-running.sh"
manager_scratch live-library
# Enough is counted for a meter.
pace=0.05
export STATE_DIRECTORY=$dir/state XDG_STATE_HOME=$dir
subject=libwork.so
# The library has all code, main() included; the program is a name that loads it.
gcc -O2 -Wl,--emit-relocs,-Bsymbolic -pthread -fPIC -shared -o original "$root/tests/e2e/manager/service.c" || exit 1
cp original libwork.so
echo 'int nothing;' >nothing.c
rm -f prog
gcc -O2 -o prog nothing.c -L. -lwork -Wl,-rpath,"$dir" && cp prog another || exit 1
rm -f db db-*
profile libwork.so 12000 work
services=
serve() { # PROGRAM ARGS: sets $service
	: >"serve-$1.txt"
	"./$1" "${@:2}" >"serve-$1.txt" 2>&1 &
	service=$!
	services="$services $service"
	at_exit 'kill -9 $services $worker_pid 2>/dev/null; rm -rf "$dir"'
	awaits "grep -q ready serve-$1.txt" || fail "the service does not start"
}
ends_right() { # WHAT PROGRAM PID
	kill -TERM "$3"
	wait "$3" || fail "$1: the service ended with $?"
	[ "$(cat "serve-$2.txt")" = $'ready\ndone' ] || fail "$1: the service says $(cat "serve-$2.txt")"
}
reason() { # STEP
	db "SELECT reason FROM history WHERE step = '$1'"
}

# ---- without the key, it is advised by samples
live_policy
serve prog 2 0
grows_old
first=$service
begin_work
wait_for advised "no key"
wait "$worker_pid"
have_text "no key" "$first"
[[ "$(reason advise)" == "everyday use decides about libraries only in running processes"* ]] || fail "no key: $(reason advise)"

# ---- two programs have it
forget
live_policy "live = yes"
serve another 1 0
begin_work
wait_for advised "two programs"
wait "$worker_pid"
[[ "$(reason live)" == *"several programs have loaded it"* ]] || fail "two programs: $(reason live)"
[[ "$(reason count)" == "a library is counted in running processes alone"* ]] || fail "two programs: $(reason count)"
have_text "two programs" "$first"
ends_right "two programs" another "$service"

# ---- a whole round; the worker is killed while it counts, and told to stop while it tries
forget
begin_work
wait_for counting "counting"
[ "$(reason count)" = "a version that counts is put into its running processes at times" ] || fail "counting: $(reason count)"
awaits '[ "$(versions_in "$first")" = counting ] || ! kill -0 $worker_pid 2>/dev/null'
put_down KILL
cmp -s libwork.so original || fail "counting: the file was replaced"
begin_work
wait_for trying "trying"
[ "$(db "SELECT verdict FROM history WHERE step = 'counted'")" = done ] || fail "it was not counted: $(reason counted)"
awaits '[ "$(versions_in "$first")" = metered-new ]' || fail "trying: in use is $(versions_in "$first")"
put_down TERM
have_text "told to stop" "$first"
begin_work
wait_for adopted "adopted"
[ "$(db "SELECT verdict FROM history WHERE step = 'tried'")" = faster ] || fail "adopted: $(reason tried)"
[ "$(db "SELECT verdict FROM history WHERE step = 'live'")" = done ] || fail "adopted: $(reason live)"
put_down TERM
[ "$(versions_in "$first")" = output-running ] || fail "adopted: in use is $(versions_in "$first")"
cmp -s libwork.so state/*/output || fail "adopted: not at the path"

# ---- the program crashes more often than before: undone, at the path and in the processes
sleep 1
touch cores/core.prog.0.0123.77.1
begin_work
awaits "[ \"\$(db 'SELECT state FROM job')\" = undone ]" || fail "crash: $(db 'SELECT state, detail FROM job')"
put_down TERM
cmp -s libwork.so original || fail "crash: the original is not back"
have_text "crash" "$first"

# ---- the program is upgraded in the middle of a trial: it ends, and no version stays in the old processes
forget
begin_work
wait_for trying "upgrade"
awaits '[ "$(versions_in "$first")" = metered-new ] || [ "$(versions_in "$first")" = metered-original ]' || fail "upgrade: no version is in use"
cp prog prog.new && mv prog.new prog
awaits "[ \"\$(db \"SELECT count(*) FROM history WHERE step = 'tried'\")\" != 0 ]" || fail "upgrade: the trial goes on"
put_down TERM
[[ "$(reason tried)" == "the program that has loaded it was replaced"* ]] || fail "upgrade: $(reason tried)"
have_text "upgrade" "$first"

# ---- the old process makes no round possible, and a new one does
forget
begin_work
wait_for advised "an old process"
put_down TERM
[[ "$(reason live)" == *"the program that has loaded it was replaced"* ]] || fail "an old process: $(reason live)"
kill -TERM "$first"
wait "$first" || fail "the service of the program that was upgraded ended with $?"
serve prog 2 0
second=$service

# ---- the old program gets another name, as mv gives it: no version stays in its processes
forget
grows_old
begin_work
wait_for trying "renamed"
awaits '[ "$(versions_in "$second")" = metered-new ] || [ "$(versions_in "$second")" = metered-original ]' || fail "renamed: no version is in use"
cp prog prog.new && mv prog prog.old && mv prog.new prog
awaits "[ \"\$(db \"SELECT count(*) FROM history WHERE step = 'tried'\")\" != 0 ]" || fail "renamed: the trial goes on"
put_down TERM
have_text "renamed" "$second"
[ -z "$(versions_in "$second")" ] || fail "renamed: in use is $(versions_in "$second")"
mv -f prog.old prog

# ---- morph off, in the middle of a trial
forget
begin_work
wait_for trying "off"
awaits '[ "$(versions_in "$second")" = metered-new ] || [ "$(versions_in "$second")" = metered-original ]' || fail "off: no version is in use"
put_down KILL
rm -rf state
m 0 "off" off --policy=etc
says out.txt "^1 running process has the original's code again" "off"
cmp -s libwork.so original || fail "off: not the original"
have_text "off" "$second"
ends_right "off" prog "$second"
finish
