#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: two users, and Morph.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

echo 'kernel.perf_event_paranoid = 2' >/etc/sysctl.d/90-perf.conf
check "morph installs" dpkg -i "$files/morph.deb"
check "the programs install" dpkg -i "$files"/trial/morph-trial_1_*.deb
useradd -m -s /bin/bash alice
useradd -m -s /bin/bash bob
# Others may look around in both homes: only the modes of Morph's own files protect these.
chmod 755 /home/alice /home/bob
install -d -o alice -g alice /home/alice/bin
install -o alice -g alice -m 755 /usr/bin/spread /home/alice/bin/spread
# A short day for users: the worker looks at once, and every ten seconds. An empty value resets all three times.
mkdir -p /etc/systemd/user/morph-optimize.timer.d
cat >/etc/systemd/user/morph-optimize.timer.d/short.conf <<'UNIT'
[Timer]
OnStartupSec=
OnStartupSec=1s
OnUnitInactiveSec=10s
AccuracySec=1s
UNIT
start_stages
