#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: a program, and a rule that adopts it.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

check "morph installs" dpkg -i "$files/morph.deb"
check "the program installs" dpkg -i "$files"/trial/morph-trial_1_*.deb
cp /usr/bin/spread /root/original
# An audit that needs little time: with the original, the command takes three times as long.
cat >/usr/local/bin/speed <<'END'
#!/bin/sh
n=10000
cmp -s /usr/bin/spread /root/original && n=30000
while [ $n -gt 0 ]; do n=$((n - 1)); done
END
chmod 755 /usr/local/bin/speed /root /root/original
cat >/etc/morph/watch.d/spread.conf <<'CONF'
program = /usr/bin/spread
mode = adopt
train = /usr/bin/spread 2000
command = /usr/local/bin/speed
CONF
echo 'share = 0' >>/etc/morph/morph.conf
mkdir -p /var/lib/morph /var/lib/morph-worker /var/lib/morph-backup
chmod +x "$files"/power-*.sh
# Everyday use decides: no rule, and samples as morphd would have taken them.
[ -e "$files/lib-samples.sh" ] || exit 0
# shellcheck source=tests/e2e/manager/lib-samples.sh
. "$files/lib-samples.sh"
rm /etc/morph/watch.d/spread.conf
printf '%s\n' 'cost = 100%' 'min-samples = 1000' >>/etc/morph/morph.conf
samples_as_perf /usr/bin/spread 12000 mix >/tmp/perf.text
check "samples are there" morph-stats --db=/root/profile.db import /tmp/perf.text
cp /root/profile.db /var/lib/morph/morph.db
