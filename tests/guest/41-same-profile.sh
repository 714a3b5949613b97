#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# icount
# long
# timeout: 10000000
# The same work gives the same profile from the module, from perf and from BPF. With a clock that counts
# instructions no timer is late because of what the machine outside does: what is left of the difference
# between runs is that of samples drawn at random, and two thousand in each of 20 runs show 3 % moved.
# With any other clock an emulator's runs differ too much. A false alarm in a hundred thousand: for
# one in a million the emulated processor draws lots for longer than it samples.
. "$(dirname "$0")/lib.sh"

# Compiled already: in an emulator it takes longer than all runs of a source.
cat >cc <<'CC'
#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
exec cp "$GUEST/$2" "$2"
CC
chmod +x cc
load
CC=$PWD/cc SOURCES="kmod perf bpf" RUNS=20 RATE=16000 MS=120 ALARMS=100000 \
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
