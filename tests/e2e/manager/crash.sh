#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone: it samples
# A version in use that crashes is undone by the collector's exit records alone, without core files; a program that
# somebody ends is no crash. perf does not tell signals, so BPF or the kernel module is needed.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/lib-manager.sh"
need gcc jq objdump readelf sqlite3
manager_scratch crash
SOURCES="bpf kmod" sampling
speed 120
rule "mode = adopt" "$(by_speed)"
work 0 "adopted" --now
state_is adopted "adopted"
# ended SIGNAL: the version in place runs for a while, and ends by the signal
ended() {
	"$BUILD/morphd" run --source="${sources##* }" --db=db -- /bin/sh -c \
		"./prog 2000000000 >/dev/null & sleep 1; kill -$1 \$!; wait; exit 0" >out.txt 2>err.txt ||
		fail "morphd run: $(cat err.txt)"
}
ended TERM
work 0 "ended by SIGTERM" --now
state_is adopted "ended by SIGTERM"
[ "$(db 'SELECT count(*) FROM crash')" = 0 ] || fail "ended by SIGTERM: $(db 'SELECT * FROM crash')"
sleep 1
ended ABRT
[ "$(db 'SELECT signal, nr FROM crash')" = '6|1' ] || fail "SIGABRT: $(db 'SELECT * FROM crash')"
work 0 "crashed"
state_is undone "crashed"
says err.txt 'prog: undoing: it crashed 1 times since it was put in place' "crashed"
cmp prog original || fail "crashed: not the original"
"$BUILD/morph-stats" --db db status --check >out.txt 2>&1 || fail "$(cat out.txt)"
finish
