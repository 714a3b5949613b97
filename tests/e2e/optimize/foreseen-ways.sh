#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which ways the next branches go, by registers: of random snippets of code, as on an emulated processor. The long form
# has more snippets. SEED in the environment: other snippets.
# timeout: 600
. "$(dirname "$0")/../lib.sh"
scratch foreseen-ways
[ -x "$BUILD/tools/foreseen-ways" ] || { echo "skip: foreseen-ways: no emulator (libunicorn-dev)"; exit 77; }

snippets=100000
[ "${MORPH_LONG:-0}" = 0 ] || snippets=3000000
command_ends 0 "$snippets snippets" "$BUILD/tools/foreseen-ways" "$snippets" "${SEED:-1}"
nr=$(sed -n 's/.* with a way, \([0-9]*\) ways.*/\1/p' out.txt)
[ "${nr:-0}" -ge $((snippets / 3)) ] || fail "only '$nr' ways in $snippets snippets"
cat out.txt
finish
