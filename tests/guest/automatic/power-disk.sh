#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: a program, and a rule that adopts it.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

check "morph installs" dpkg -i "$files/morph.deb"
check "the program installs" dpkg -i "$files"/trial/morph-trial_1_*.deb
cp /usr/bin/spread /root/original
# An audit that needs no time: the command prints how fast it says the version is, by its bytes.
cat >/usr/local/bin/speed <<'END'
#!/bin/sh
if cmp -s /usr/bin/spread /root/original; then echo speed 100; else echo speed 120; fi
END
chmod 755 /usr/local/bin/speed /root /root/original
cat >/etc/morph/watch.d/spread.conf <<'CONF'
program = /usr/bin/spread
mode = adopt
train = /usr/bin/spread 2000
command = /usr/local/bin/speed
metric = /speed ([0-9]+)/
CONF
echo 'share = 0' >>/etc/morph/morph.conf
mkdir -p /var/lib/morph /var/lib/morph-worker /var/lib/morph-backup
chmod +x "$files/power-init.sh"
