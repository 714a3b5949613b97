#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a reboot, with Debian's defaults: without the module, and with kernel.perf_event_paranoid=3.
# The package says what to do, no unit fails, and the service starts once the setting is changed.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

# If only this stage runs, the disk still has the module.
if dpkg -s morphmon-dkms >/dev/null 2>&1; then
	dpkg --purge morphmon-dkms >"$log" 2>&1
fi
check "the machine starts" is_sound
check "without the module" is_gone /dev/morphmon
check "kernel.perf_event_paranoid is Debian's 3" grep -qx 3 /proc/sys/kernel/perf_event_paranoid

install() { apt-get -q -y install "$files"/new/morph_*.deb >/root/install.log 2>&1 || { cat /root/install.log; false; }; }
check "apt installs morph" install
# The end of apt's output, except for triggers of other packages.
ends_with_advice() {
	grep -v '^Processing triggers\|^Scanning \|^N: \|^$' /root/install.log | tail -n 3 >"$log.end"
	cat "$log.end"
	grep -q 'not collecting' "$log.end" && grep -q 'sysctl kernel.perf_event_paranoid=2' "$log.end" &&
		grep -q 'morphmon-dkms' "$log.end"
}
check "and says at the end what to do" ends_with_advice
check "the service runs" runs
shows() {
	systemctl status --no-pager morphd
	systemctl status --no-pager morphd | grep -q "Status:.*not collecting: .*sysctl kernel.perf_event_paranoid=2"
}
check "systemctl status says what to do" shows
sleep 60
check "and a minute later as well" shows
check "the service was started once" test "$(systemctl show -P NRestarts morphd)" = 0
check "no unit has failed" is_sound
check "systemd has warned of nothing" no_complaint "not allowed"

now=$(pid)
sysctl -qw kernel.perf_event_paranoid=2
collecting() { systemctl show -P StatusText morphd | grep -qE '^(bpf|perf), [0-9]+ Hz: '; }
check "the service collects by itself where it is 2" within 300 collecting
check "in the same process" is_pid "$now"
check "gzip's samples are in the database" grows 0
check "no sample is unaccounted for" morph-stats --db="$db" status --check
check "nothing is wrong in the kernel's log" kernel_is_well
check "morph is purged" dpkg --purge morph
check "no unit has failed" is_sound
