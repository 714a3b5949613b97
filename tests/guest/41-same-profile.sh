#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# timeout: 3600
# The same work gives the same profile from the module, from perf and from BPF.
. "$(dirname "$0")/lib.sh"
load
SOURCES="kmod perf bpf" RUNS=20 RATE=8000 MS=2500 \
	bash "$root/tests/e2e/37-same-profile.sh" >said 2>&1
status=$?
cat said
case $status in
0|77) ;;
*) fail "$(grep -m 1 FAIL said || tail -n 1 said)" ;;
esac
# Three pairs at three levels: none was left out.
[ "$(grep -c ': the same; ' said)" = 9 ] || fail "not all was compared"
unload
[ $nr_failed != 0 ] || [ $status = 0 ] || { tail -n 1 said; exit 77; }
finish
