#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a reboot: the profile still exists and grows; an upgrade keeps it, a purge removes it.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
had=$(cat /root/gzip.count)
at_least() { [ "$(samples_of /usr/bin/gzip)" -ge "$1" ]; }

check "the machine starts" is_sound
check "the service runs" runs
check "gzip's samples of before are there" at_least "$had"
check "and new ones come" grows "$had"
check "taken by the module" collects_with kmod
check "the configuration is the changed one" rate_is 499

had=$(samples_of /usr/bin/gzip)
now=$(pid)
check "morph is upgraded" dpkg -i "$files"/new/morph_*.deb
check "the service is restarted" within 300 is_other_pid "$now"
check "the state is kept" at_least "$had"
check "the changed configuration is kept" grep -q '^rate = 499' /etc/morph/morphd.conf
check "and the counts grow" grows "$had"
check "nothing is wrong in the journal" no_complaint
check "nor in the kernel's log" kernel_is_well

# Purge the module's package first: morphd must continue without the module.
now=$(pid)
check "morphmon-dkms is purged" dpkg --purge morphmon-dkms
check "the module is unloaded" is_gone /sys/module/morphmon
dkms_empty() { [ -z "$(dkms status; find /lib/modules /usr/src -name 'morphmon*')" ]; }
check "nothing of it is left" dkms_empty
# Debian's settings allow no other source; morphd says so until they are changed.
says_what_to_do() { journalctl -q -b -o cat -u morphd | grep 'kernel.perf_event_paranoid=2'; }
check "the service says what it needs now" within 300 says_what_to_do
stays() { systemctl -q is-active morphd && is_other_pid "$now"; }
check "and does not fail" within 300 stays
now=$(pid)
sysctl -qw kernel.perf_event_paranoid=2
collecting() { systemctl show -P StatusText morphd | grep -qE '^(bpf|perf), [0-9]+ Hz: '; }
check "and goes on when it has that" within 600 collecting
check "in the same process" is_pid "$now"
other() { collector | grep -vx kmod; }
check "with another collector" within 300 other
had=$(samples_of /usr/bin/gzip)
check "and the counts grow" grows "$had"
status | jq -r '.sessions | max_by(.start_s) | "note  \(.collector): \(.why)"'

check "morph is removed" dpkg --remove morph
check "the service has ended" fails systemctl is-active morphd
check "its state is still there" test -s "$db"
check "morph is purged" dpkg --purge morph
check "its state is gone" is_gone /var/lib/morph
check "its configuration is gone" is_gone /etc/morph
nothing_left() {
	! find / -xdev \( -path /root -o -path /proc -o -path /var/log -o -path /var/lib/dpkg \) -prune -o \
		-name '*morph*' -print | grep .
}
check "no file is left" nothing_left
unknown() { [ "$(systemctl show -P LoadState morphd)" = not-found ]; }
systemctl daemon-reload
check "systemd knows nothing of it" unknown
check "nothing is wrong in the kernel's log" kernel_is_well
check "no unit has failed" is_sound
