#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: the machine as it is before Morph, and a short day.
# shellcheck source=tests/guest/automatic/disk.sh
. /root/files/disk.sh

# The packaged unit with all that it forbids; only the worker's times are shorter, as the stages say.
mkdir -p /etc/systemd/system/morph-optimize.service.d
cat >/etc/systemd/system/morph-optimize.service.d/short.conf <<'UNIT'
[Service]
Environment=PACE=1
ExecStart=
ExecStart=/usr/sbin/morph-worker --config=/etc/morph --state-dir=%S/morph-worker --lab-pace=${PACE}
UNIT
# What root and another user do every day.
cat >/usr/local/bin/workload <<'WORK'
#!/bin/sh
while :; do
	spread 60000
	setpriv --reuid=65534 --regid=65534 --clear-groups spread 60000
done >/dev/null
WORK
