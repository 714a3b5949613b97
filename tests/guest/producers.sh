#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: a suite in an emulator
# one kernel
# timeout: 3000
# The suite for every source of samples, with the module. Except in the long run, only a part of it.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null && command -v sqlite3 >/dev/null || { echo "skip: jq or sqlite3 is missing"; exit 77; }

# The suite compiles its programs, which takes long in an emulator. Here they are ready.
cat >cc <<'CC'
#!/bin/bash
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
exec cp "$GUEST/producers-$2" "$2"
CC
chmod +x cc
# On a busy machine an emulated timer is late, while CPU time goes on. A tenth of the usual samples
# is enough to see where they are attributed.
export CC=$PWD/cc SOURCES=kmod SCALE=3 TIMES=10 LEAST=10
[ "$LONG" = 1 ] || export KINDS=system SCENARIOS="short remap"
load
bash "$root/tests/e2e/morphd/producers.sh" || fail "exit $?"
unload
finish
