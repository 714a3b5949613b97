#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# icount
# long
# timeout: 10000000
# The same work gives the same calling context tree from the module, which walks stacks in its interrupt, from
# BPF, which does so by other code, and from perf, whose copies morphd walks. As in same-profile.sh, the clock
# counts instructions.
. "$(dirname "$0")/lib.sh"

cat >cc <<'CC'
#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
exec cp "$GUEST/$2" "$2"
CC
chmod +x cc
load
CC=$PWD/cc SOURCES="kmod perf bpf" RUNS=${RUNS:-20} RATE=4000 MS=${MS:-400} ALARMS=100000 \
	bash "$root/tests/e2e/morphd/same-tree.sh" >said 2>&1
status=$?
cat said
case $status in
0|77) ;;
*) fail "$(grep -m 1 FAIL said || tail -n 1 said)" ;;
esac
[ "$(grep -c '^contexts, .*: the same; ' said)" = 3 ] || fail "not all was compared"
unload
[ $nr_failed != 0 ] || [ $status = 0 ] || { tail -n 1 said; exit 77; }
finish
