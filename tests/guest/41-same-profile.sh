#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# long
# timeout: 3600
# The same work gives the same profile from the module, from perf and from BPF.
. "$(dirname "$0")/lib.sh"
load
SOURCES="kmod perf bpf" RATE=2000 MS=1500 bash "$root/tests/e2e/37-same-profile.sh" >said 2>&1 ||
	fail "$(grep -m 1 FAIL said || tail -n 1 said)"
cat said
# Three pairs at three levels: none was left out.
[ "$(grep -c ': the same; .*: that is seen' said)" = 9 ] || fail "not all was compared"
unload
finish
