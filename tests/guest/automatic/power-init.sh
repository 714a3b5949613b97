#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a machine that loses its power at any moment. Each start checks what the last one
# left, continues the round, checks its end, and begins another round, until the power goes.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH HOME=/root MORPH_DB=/var/lib/morph/morph.db
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev 2>/dev/null
mount -t tmpfs none /tmp
exec >/dev/ttyS1 2>&1 </dev/null
stty -F /dev/ttyS1 raw -echo
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
log=/tmp/log
program=/usr/bin/spread
decisions() { morph history --json | jq -r "$1"; }

# At the path lies the original or the version, whole.
whole() {
	cmp -s $program /root/original && return
	[ -e /root/version ] && cmp -s $program /root/version && return
	# In the first round the version is not known yet: it has to be proved.
	[ ! -e /root/version ] && morph-optimize verify --report=none /root/original $program
}
prints() { [ "$($program 500)" = "$(/root/original 500)" ]; }
nothing_beside() { [ -z "$(find /usr/bin -name '.*morph*' -o -name '*.morph-*')" ]; }
each_step_once() {
	local twice
	[ -s $MORPH_DB ] || return 0
	# What was replaced is in the history.
	cmp -s $program /root/original || [ -n "$(decisions '.decisions[].step')" ] || {
		echo "a version is in place, and no step in the history"
		return 1
	}
	twice=$(decisions '.decisions | group_by([.path, .round, .step])[] | select(length > 1) | .[0].step')
	[ -z "$twice" ] || { echo "twice: $twice"; return 1; }
}
# The exit status is another one as well where nothing is sampled, as here. The power may go between the
# making of the database and its first transaction.
adds_up() {
	[ ! -s $MORPH_DB ] || morph-stats --db=$MORPH_DB status --check 2>&1 |
		grep -E 'checked and sound|empty, nothing was ever stored'
}
state() { morph list --all --json | jq -r '.programs[] | select(.path == "/usr/bin/spread").state'; }
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

# Back to the beginning. A power cut within is no part of the test: the next start does this again.
begin_anew() {
	touch /root/anew && sync
	rm -rf /var/lib/morph/* /var/lib/morph-worker/* /var/lib/morph-backup/*
	cp /root/original /root/copy && chmod 755 /root/copy && sync && mv /root/copy $program
	sync
	rm /root/anew && sync
}

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
