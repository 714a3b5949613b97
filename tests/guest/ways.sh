#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: morphd in an emulator, three times
# one kernel
# The module and morphd: registers of samples, with the flags, tell ways of branches. The service takes them by default,
# and so does `morphd run --pid`; with registers = no there are none.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || { echo "skip: jq is missing"; exit 77; }
service() { # CONFIGURATION: the service, while the program runs
	echo "$1" >conf
	rm -f db*
	"$BUILD/morphd" --config "$PWD/conf" --source=kmod --rate 997 --interval 1 --db db --json >out.json 2>morphd.err &
	daemon=$!
	until [ -s db ] || ! kill -0 $daemon 2>/dev/null; do sleep 0.1; done
	for _ in 1 2 3; do "$GUEST/paths-original" 20 || fail "paths-original: exit $?"; done
	kill -TERM $daemon
	wait $daemon || fail "$1: morphd: exit $?: $(cat morphd.err)"
	"$BUILD/morph-stats" status --check --db db >/dev/null || fail "$1: status --check"
	echo "$1: $(jq -c '[.attributed, .ways]' out.json)"
}
load
service "registers = auto"
[ "$(jq '.ways.ways > 50 and .ways.failed == 0' out.json)" = true ] || fail "few ways: $(jq -c .ways out.json)"
[ "$("$BUILD/morph-stats" status --db db --json | jq .nr_ways)" = "$(jq .ways.ways out.json)" ] || fail "the store has others"
"$BUILD/morph-stats" status --db db --json | jq -r '.sessions[0].why' | grep 'without flags' && fail "no flags"
service "registers = no"
[ "$(jq .ways.samples out.json)" = 0 ] || fail "ways in spite of registers = no: $(jq -c .ways out.json)"
"$GUEST/paths-original" 1000 &
victim=$!
"$BUILD/morphd" run --source=kmod --pid $victim --db pid.db --json -- sleep 3 >out.json 2>morphd.err || fail "--pid: $(cat morphd.err)"
kill $victim
[ "$(jq '.ways.ways > 50' out.json)" = true ] || fail "--pid: $(jq -c .ways out.json) $(cat morphd.err)"
unload
finish
