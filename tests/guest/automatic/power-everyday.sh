#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a machine that loses its power while everyday use is counted and tried, and in `morph on' and
# `morph off'. Each start checks what the last one left. The kernel's parameter morph.then says what follows:
# off: `morph off' at once, then a round; go: the round goes on. A round ends with `morph off', too.
# shellcheck source=tests/guest/automatic/power-lib.sh
. /root/files/power-lib.sh
kinds=layout,edges,edges+threads,meter

# At the path lies the original or a version that is proved to do the same, and the worker knows its name.
name_in_place() {
	local file
	! cmp -s $program /root/original || { echo original; return; }
	for file in /var/lib/morph-worker/*/{counting,metered-original,metered-new,output}; do
		! cmp -s $program "$file" || { basename "$file"; return; }
	done
	return 1
}
whole() { cmp -s $program /root/original || morph-optimize verify --report=none --kind=$kinds /root/original $program; }
has_ended() { [[ " adopted kept not-faster undecided advised " == *" $(state) "* ]] || { morph history; return 1; }; }
was_tried() { decisions '[.decisions[] | .step + ":" + .verdict] | join(" ")' | tee /tmp/steps; grep -q 'counted:done.*tried:' /tmp/steps; }
is_off() {
	cmp $program /root/original || return 1
	[ ! -e /etc/morph/on.conf ] || { echo "the settings are there"; return 1; }
	! find /var/lib/morph-worker -name '*counting*' -o -name '*metered*' | grep .
}
# Work of every day, which writes nothing.
use() {
	while :; do
		$program 60000 || echo "FAIL  a process of everyday use has ended with $?" >/dev/ttyS1
	done >/dev/null
}

[ ! -e /root/anew ] || begin_anew
check "at the path lies a whole version" whole
check "its name is known" name_in_place
check "it works" prints
check "each step is in the history once" each_step_once
check "the ledgers add up" adds_up
[ ! -s $MORPH_DB ] || echo "note  the state is '$(state)', in place is: $(name_in_place)"
use &
echo "begin"
if grep -q 'morph.then=off' /proc/cmdline; then
	check "morph off" morph off
	check "the original is back, and nothing is left" is_off
	echo "off"
	begin_anew
fi
while :; do
	check "morph on" morph on --only=$program
	# Its messages tell the host in which state it is.
	morph-worker --now --lab-pace=0.02 2>&1 | sed -u -E 's/^(.{150}).*/\1/; s/^/note  /'
	check "the worker has ended well" test "${PIPESTATUS[0]}" = 0
	check "the round is at its end" has_ended
	check "everyday use was counted, and has decided" was_tried
	check "at the path lies a whole version" whole
	check "its name is known" name_in_place
	check "it prints what the original prints" prints
	check "nothing is left beside it" nothing_beside
	echo "ends in $(state) after $(decisions '.decisions | length') steps"
	check "morph off" morph off
	check "the original is back, and nothing is left" is_off
	echo "end  $(state)"
	begin_anew
done
