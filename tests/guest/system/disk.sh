#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: the module's package is installed
# and upgraded. This is not done in the machine, where the compiler would be emulated, too.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
release=$(ls /lib/modules)
built=/lib/modules/$release/updates/dkms/morphmon.ko
old=$(dpkg-deb -f "$files"/old/morphmon-dkms_*.deb Version)
new=$(dpkg-deb -f "$files"/new/morphmon-dkms_*.deb Version)

versions() {
	[ "$(dkms status -m morphmon)" = "morphmon/$1, $release, x86_64: installed" ] || {
		dkms status
		return 1
	}
}
fits() { modinfo -F vermagic "$built" | grep "^$release "; }
no_warning() {
	! grep -iE 'warning|error' /var/lib/dkms/morphmon/*/"$release"/x86_64/log/make.log
}

# An emulated machine beside other work may take minutes to load programs into its kernel.
mkdir -p /etc/systemd/system/morphd.service.d
printf '[Service]\nTimeoutStartSec=10min\nWatchdogSec=10min\n' >/etc/systemd/system/morphd.service.d/slow.conf
check "morphmon-dkms installs" dpkg -i "$files"/old/morphmon-dkms_*.deb
check "dkms has built $old" versions "$old"
check "the module is for $release" fits
check "without a warning" no_warning
check "morphmon-dkms is upgraded" dpkg -i "$files"/new/morphmon-dkms_*.deb
check "dkms has built $new, and only that" versions "$new"
check "nothing of $old is left" is_gone "/usr/src/morphmon-$old"

start_stages
