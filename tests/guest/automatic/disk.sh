#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: the machine as it is before Morph.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

# No module here: morphd samples with perf, which Debian's default forbids.
echo 'kernel.perf_event_paranoid = 2' >/etc/sysctl.d/90-perf.conf
# Packages come from a directory, as from any mirror.
rm -f /etc/apt/sources.list.d/* /etc/apt/sources.list
echo "deb [trusted=yes] file:$files/repository ./" >/etc/apt/sources.list
mkdir -p /etc/systemd/system/morph-optimize.timer.d
# A short day: the worker looks every ten seconds, not every half minute. An empty value removes the times of
# every kind, so one is enough, and it has to be the first line.
cat >/etc/systemd/system/morph-optimize.timer.d/short.conf <<'UNIT'
[Timer]
OnBootSec=
OnBootSec=1s
OnUnitInactiveSec=10s
AccuracySec=1s
UNIT
# The everyday use of the programs.
cat >/usr/local/bin/workload <<'WORK'
#!/bin/sh
while :; do
	spread 60000
	plain 200000
	answer 7007 20000 3
	sleep 2
done >/dev/null
WORK
chmod +x /usr/local/bin/workload
cat >/etc/systemd/system/workload.service <<'UNIT'
[Unit]
Description=Everyday use of the programs
After=answerd.service
[Service]
ExecStart=/usr/local/bin/workload
[Install]
WantedBy=multi-user.target
UNIT
start_stages
