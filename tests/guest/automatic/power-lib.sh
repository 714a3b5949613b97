# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Shared by the first processes of a machine that loses its power; sourced. Mounts what a first process has to, and has
# the checks of what the last start left.
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

# Back to the beginning. A power cut within is no part of the test: the next start does this again.
begin_anew() {
	touch /root/anew && sync
	rm -rf /var/lib/morph/* /var/lib/morph-worker/* /var/lib/morph-backup/*
	cp /root/original /root/copy && chmod 755 /root/copy && sync && mv /root/copy $program
	[ ! -e /root/profile.db ] || { rm -f /etc/morph/on.conf && cp /root/profile.db $MORPH_DB; }
	sync
	rm /root/anew && sync
}
