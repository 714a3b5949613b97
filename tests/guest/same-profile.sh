#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# icount
# long
# timeout: 10000000
# The same work gives the same profile from the module, from perf and from BPF. With a clock that
# counts instructions, load outside the machine delays no timer. The runs then differ only as random
# samples do, and 2,000 samples in each of 20 runs show a shift of 3 %. With any other clock an
# emulator's runs differ too much. False alarms are one in a hundred thousand: for one in a million
# the test's random choices would take the emulated processor longer than sampling.
. "$(dirname "$0")/lib.sh"

# Compiled outside: in an emulator, compiling takes longer than all runs of a source.
cat >cc <<'CC'
#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
exec cp "$GUEST/$2" "$2"
CC
chmod +x cc
load
CC=$PWD/cc SOURCES="kmod perf bpf" RUNS=20 RATE=16000 MS=120 ALARMS=100000 \
	bash "$root/tests/e2e/morphd/same-profile.sh" >said 2>&1
status=$?
cat said
case $status in
0|77) ;;
*) fail "$(grep -m 1 FAIL said || tail -n 1 said)" ;;
esac
# Three pairs of sources at three levels: all were compared.
[ "$(grep -c ': the same; ' said)" = 9 ] || fail "not all was compared"
unload
[ $nr_failed != 0 ] || [ $status = 0 ] || { tail -n 1 said; exit 77; }
finish
