#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that are easy to break, audited in two versions: those that verify refused wrongly. `make check-audits`
# takes all programs and builds.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../lib.sh"
need gcc g++ python3
scratch hazards

audited() { # WHAT OPTION...
	local what=$1
	shift
	"$root/scripts/check/hazards" --instrument=audit --seeds=1 "$@" >out.txt 2>&1 || fail "$what: $(cat out.txt)"
	tail -n 2 out.txt | sed "s/^/$what: /"
}

audited "jumps to a trap" --every=5 traps
audited "operands of eight bytes" --build=nopie --build=relinkable --build=-O2 models
if command -v ld.mold >/dev/null; then
	audited "relocations behind all sections" --build=mold --build=relinkable --build=-O2 linkers
else
	left_out="$left_out mold,"
fi
finish
