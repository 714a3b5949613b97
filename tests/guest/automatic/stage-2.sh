#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a reboot: packages are upgraded in the middle of a round and behind it; what dpkg wrote stays, and the
# next round optimises it. A removed program is gone. Removing morph puts every original back.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh
apt_get() { apt-get -q -y -o Dpkg::Use-Pty=0 --allow-downgrades "$@"; }
unpack 2

check "the machine starts" is_sound
check "the worker's timer is active" systemctl is-active morph-optimize.timer
check "spread: the version of before is in place" fits_its_state spread 1

# From here on spread's audit takes so long that the next upgrade finds it under way.
longer() { sed -i "s/spread $1\$/spread $2/" /etc/morph/watch.d/*.conf && grep -h "spread $2\$" /etc/morph/watch.d/*.conf; }
check "spread's runs take longer" longer 300000 6000000

# The upgrade of adopted programs. The trigger starts the worker; only the hash decides.
sed -i 's/repository /repository-2 /' /etc/apt/sources.list
check "apt reads the repository" apt_get update
upgrade() { apt_get upgrade | tee /root/upgraded; return "${PIPESTATUS[0]}"; }
check "apt upgrades the programs" upgrade
check "dpkg calls the trigger of morph" grep -E 'triggers for morph ' /root/upgraded
for p in $programs; do
	check "$p: what dpkg wrote is there" is_original "$p" 2
done
check "dpkg finds every file as it wrote it" dpkg --verify morph-trial
next_round() { steps spread 2 | grep -q 'profile:'; }
check "spread: a new round begins" within 1200 next_round

# Another "upgrade" while that round is under way.
auditing() { in_state spread 'written verified' >/dev/null; }
check "spread: the round comes to its audit" within 600 auditing
check "apt writes the first version again, in the middle of the round" apt_get install \
	"$files"/trial/morph-trial_1_*.deb
check "spread: what dpkg wrote is there" is_original spread 1
longer 6000000 300000 >/dev/null
# A state may still be that of the round before, until the worker looks.
settled() {
	local p
	for p in spread answerd; do
		in_state $p 'adopted kept' && is_verified $p 1 >/dev/null 2>&1 || return 1
	done
}
within 1800 settled
for p in spread answerd; do
	check "$p: the new file was optimised and adopted" in_state "$p" 'adopted kept'
	check "$p: the file fits its state" fits_its_state "$p" 1
	upgraded() { morph history --json "/usr/bin/$p" | jq -e '[.decisions[].step] | contains(["upgrade"])'; }
	check "$p: the history tells of an upgrade" upgraded
done
check "each step is in the history once" each_step_once

# A removed package.
systemctl -q stop workload answerd
check "apt removes the programs" apt_get remove morph-trial
gone() { in_state spread gone && in_state plain gone && in_state answerd gone; }
check "all three are gone" within 600 gone
check "nothing is left in their place" is_gone /usr/bin/spread
check "apt installs them again" apt_get install "$files"/trial/morph-trial_1_*.deb
settled_again() { in_state spread 'adopted kept' && is_verified spread 1 >/dev/null 2>&1; }
check "spread is adopted again" within 1800 settled_again
check "spread: the file fits its state" fits_its_state spread 1

# The worker's sandbox, while it has work.
SYSTEMD_EMOJI=0 systemd-analyze security --no-pager morphd morph-optimize >"$log.security" 2>/dev/null
for unit in morphd morph-optimize; do
	exposure() {
		SYSTEMD_EMOJI=0 systemd-analyze security --no-pager --threshold=30 "$unit.service" | tail -n 1
		[ "${PIPESTATUS[0]}" = 0 ]
	}
	check "the exposure of $unit is at most 3.0" exposure
	sed 's/^/note  /' "$log"
done

# Purge.
check "morph is purged" apt_get purge morph
for p in $programs; do
	check "$p: the original is back" is_original "$p" 1
done
check "dpkg finds every file as it wrote it" dpkg --verify morph-trial
check "no backup is left" is_gone /var/lib/morph-backup
check "no profile is left" is_gone /var/lib/morph
check "no work is left" is_gone /var/lib/morph-worker
check "no policy is left" is_gone /etc/morph
check "the AppArmor profile is gone" is_gone /etc/apparmor.d/morph-worker
check "no unit has failed" is_sound
check "nothing is wrong in the kernel's log" kernel_is_well
