#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which ways the next branches go, by registers: of random snippets of code, as on an emulated processor. The long form
# has more snippets. SEED in the environment: other snippets.
. "$(dirname "$0")/../lib.sh"
scratch foreseen-ways
[ -x "$BUILD/tools/foreseen-ways" ] || { echo "skip: foreseen-ways: no emulator (libunicorn-dev)"; exit 77; }

seeds=$((${SEED:-1} + 29)) nr_crashes=0 snippets=100000
[ "${MORPH_LONG:-0}" = 0 ] && seeds=${SEED:-1}
for seed in $(seq "${SEED:-1}" "$seeds"); do
	"$BUILD/tools/foreseen-ways" $snippets "$seed" >out.txt 2>err.txt
	status=$?
	# The emulator itself crashed.
	[ $status = 3 ] && { nr_crashes=$((nr_crashes + 1)); continue; }
	[ $status = 0 ] || { fail "seed $seed: status $status: $(tail -n 4 err.txt)"; continue; }
	nr=$(sed -n 's/.* with a way, \([0-9]*\) ways.*/\1/p' out.txt)
	[ "${nr:-0}" -ge $((snippets / 3)) ] || fail "seed $seed: only '$nr' ways in $snippets snippets"
	cat out.txt
done
[ $nr_crashes -le 2 ] || fail "the emulator crashed $nr_crashes times"
[ -s out.txt ] || fail "nothing was compared"
finish
