#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An administrator installs morph and says `morph on'. A version that counts comes into place by itself; then the
# power goes.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh
# shellcheck source=tests/guest/automatic/lib-everyday.sh
. /root/files/lib-everyday.sh

check "the machine starts" is_sound
apt_get() { apt-get -q -y -o Dpkg::Use-Pty=0 "$@"; }
check "apt reads the repository" apt_get update
check "apt installs the programs" apt_get install morph-trial
unpack 1
systemctl -q enable --now workload.service
check "apt installs morph" apt_get install "$files/morph.deb"
check "morphd runs" runs
not_yet() { ! systemctl -q is-active morph-optimize.timer && ! systemctl -q is-active morph-optimize.socket; }
check "the worker waits for a word" not_yet
sed -i 's/^#rate = .*/rate = 499/' /etc/morph/morphd.conf
check "the collector samples more often" systemctl reload morphd
# An emulated swap takes a second of CPU time: with 1 % of the machine a trial would take hours.
printf '%s\n' 'cost = 100%' 'min-samples = 1000' 'probation = 1m' >>/etc/morph/morph.conf

check "a dry run" morph on --dry-run --only=/usr/bin/spread
check "which starts nothing" not_yet
check "morph on" morph on --only=/usr/bin/spread
sed "s/^/note  /" "$log"
for unit in morph-optimize.timer morph-optimize.path morphd.service; do
	check "$unit is enabled" systemctl is-enabled $unit
	check "$unit is active" systemctl is-active $unit
done
profile_loaded() { grep -x 'morph-worker (enforce)' /sys/kernel/security/apparmor/profiles; }
check "the worker's AppArmor profile is loaded, in enforce mode" profile_loaded
check "spread is counted" within 1800 in_state spread counting
check "a version that counts is in place" within 600 in_place spread counting
counts_of() { find "$worker_dir"/*/counting.counts -name "$1" -size +0 | grep .; }
check "root's processes count" within 120 counts_of 0
check "another user's processes count" within 120 counts_of 65534

# What the packaged units give the worker.
check "the socket unit is active" systemctl is-active morph-optimize.socket
has_sockets() {
	local env
	env=$(tr '\0' '\n' <"/proc/$(worker_pid)/environ")
	[[ "$env" == *LISTEN_FDS=2* ]] || { echo "$env"; systemctl status --no-pager morph-optimize.socket; false; }
}
check "the worker has both of its sockets" has_sockets
status_has() { grep -E "$1" "/proc/$(worker_pid)/status" || { cat "/proc/$(worker_pid)/status"; false; }; }
check "it runs behind a filter of system calls" status_has '^Seccomp:[[:space:]]*2$'
check "it cannot get more rights" status_has '^NoNewPrivs:[[:space:]]*1$'
# CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_ADMIN
check "its capabilities are those of the unit" status_has '^CapBnd:[[:space:]]*00000000000010eb$'
confined() { grep -q '^morph-worker (enforce)' "/proc/$(worker_pid)/attr/current"; }
check "it runs confined" confined
other_network() { [ "$(readlink "/proc/$(worker_pid)/ns/net")" != "$(readlink /proc/1/ns/net)" ]; }
check "it runs in a network of its own" other_network
check "the programs print what they printed" test "$(spread 777)" = "$("$(original 1 spread)" 777)"
check "AppArmor denied the worker nothing" not_denied
check "nothing is wrong in the kernel's log" kernel_is_well
check "nor in the worker's" worker_is_well
check "a version that counts is in place when the power goes" within 600 in_place spread counting
cut_power 1-count 0.05
