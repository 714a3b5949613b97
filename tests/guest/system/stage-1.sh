#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A machine with only the module installed: install morph, use the service, provoke errors.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

check "the machine starts" is_sound
check "the module is loaded at boot" test -c /dev/morphmon
check "morph installs" dpkg -i "$files"/old/morph_*.deb
check "the service is enabled" systemctl is-enabled morphd
check "the service runs" runs
owner() { [ "$(stat -c '%U:%G %a' /dev/morphmon)" = "morph:morph 640" ] || { stat /dev/morphmon; false; }; }
check "the device is morphd's, mode 0640" owner
check "not as root" test "$(stat -c %U "/proc/$(pid)")" = morph

check "gzip's samples are in the database" grows 0
check "taken by the module" collects_with kmod
most() {
	local top
	top=$(morph-stats query --json --db="$db" |
		jq -r '[.rows[] | select(.module[:1] == "/")] | max_by(.samples) | "\(.module) \(.samples)"')
	echo "$top"
	[ "${top% *}" = /usr/bin/gzip ]
}
# How large gzip's share is depends on how long the machine took to start.
check "no file has more samples than gzip" most
kernel_there() { morph-stats query --db="$db" | grep '\[kernel '; }
check "the kernel's own are there" kernel_there
check "no sample is unaccounted for" morph-stats --db="$db" status --check

# Watchdog: messages are requested and sent.
alive() {
	[ "$(systemctl show -P WatchdogUSec morphd)" != 0 ] &&
		[ "$(systemctl show -P WatchdogTimestampMonotonic morphd)" -gt "$1" ]
}
check "the watchdog is fed" within 600 alive "$(systemctl show -P WatchdogTimestampMonotonic morphd)"

# Configuration.
now=$(pid)
sed -i 's/^#rate = .*/rate = 499/' /etc/morph/morphd.conf
check "reload" systemctl reload morphd
check "the new rate holds" within 300 rate_is 499
# The change executed the samples that waited.
some_ways() { [ "$(status | jq .nr_ways)" -gt 0 ] || { status; false; }; }
check "ways of branches are in the database" within 300 some_ways
check "in the same process" is_pid "$now"
echo 'rate = fast' >>/etc/morph/morphd.conf
check "a mistake makes the reload fail" fails systemctl reload morphd
check "and the service goes on" runs
sed -i '$d' /etc/morph/morphd.conf

# A crash.
had=$(samples_of /usr/bin/gzip)
check "kill -9" kill -9 "$(main_pid)"
check "restarted after kill -9" within 300 is_other_pid "$now"
check "what was stored is there" more_of /usr/bin/gzip $((had - 1))
check "it goes on counting" grows "$had"
check "with the module again" collects_with kmod

# An ordinary user.
sysctl -qw kernel.perf_event_paranoid=3
runuser -u nobody -- morphd run --db=/tmp/nobody.db -- touch /tmp/ran >"$log" 2>&1
ret=$?
cp "$log" /tmp/refused
refused() {
	cat /tmp/refused
	[ $ret = 1 ] && [ "$(wc -l </tmp/refused)" = 1 ] &&
		grep -q 'sysctl kernel.perf_event_paranoid=2' /tmp/refused && [ ! -e /tmp/ran ]
}
check "morphd run says what to do where kernel.perf_event_paranoid is 3" refused
sysctl -qw kernel.perf_event_paranoid=2
as_user() {
	runuser -u nobody -- morphd run --db=/tmp/nobody.db -- gzip -9c /usr/bin/perl 2>&1 >/dev/null |
		tee /tmp/said
	grep -qE 'captured [1-9][0-9]* samples of .*, 0 lost' /tmp/said
}
check "and samples where it is 2" as_user

check "nothing is wrong in the journal" no_complaint \
	"killed, status=9|Failed with result 'signal'|rate = fast|morphd.conf|Reload failed|control process exited"
check "nor in the kernel's log" kernel_is_well
SYSTEMD_EMOJI=0 systemd-analyze security --no-pager morphd | tail -n 1 | sed 's/^/note  /'
samples_of /usr/bin/gzip >/root/gzip.count
