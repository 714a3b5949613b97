#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a machine that loses its power at any moment. Each start checks what the last one
# left, continues the round, checks its end, and begins another round, until the power goes.
# shellcheck source=tests/guest/automatic/power-lib.sh
. /root/files/power-lib.sh

# At the path lies the original or the version, whole.
whole() {
	cmp -s $program /root/original && return
	[ -e /root/version ] && cmp -s $program /root/version && return
	# In the first round the version is not known yet: it has to be proved.
	[ ! -e /root/version ] && morph-optimize verify --report=none /root/original $program
}
adopted() { [ "$(state)" = adopted ] || { morph history; return 1; }; }
all_steps() {
	local all
	all=$(decisions '[.decisions[] | .step + ":" + .verdict] | join(" ")')
	[ "$all" = "ask:watch profile:train write:done verify:done audit:faster adopt:done" ] || {
		echo "$all"
		return 1
	}
}
is_version() { [ ! -e /root/version ] || cmp $program /root/version; }
proved() { morph-optimize verify --report=none /root/original $program; }

[ ! -e /root/anew ] || begin_anew
check "at the path lies a whole version" whole
check "it works" prints
check "each step is in the history once" each_step_once
check "the ledgers add up" adds_up
[ ! -s $MORPH_DB ] || echo "note  the state is '$(state)'"
while :; do
	echo "begin"
	check "the worker works" morph-worker --now
	check "the round is at its end" adopted
	check "each step was taken, in order" all_steps
	check "the version in place is that of the first round" is_version
	check "it is proved" proved
	check "it prints what the original prints" prints
	check "nothing is left beside it" nothing_beside
	[ -e /root/version ] || { cp $program /root/version.new && sync && mv /root/version.new /root/version && sync; }
	echo "end  $(decisions '.decisions | length') steps"
	begin_anew
done
