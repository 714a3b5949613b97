#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs while the disk is made, with the disk's files as the root: two users, a server, and Morph.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

echo 'kernel.perf_event_paranoid = 2' >/etc/sysctl.d/90-perf.conf
check "morph installs" dpkg -i "$files/morph.deb"
# The kernel module is compiled here, since the compiler would be emulated in the machine. Only the stage loads it.
check "the module installs" dpkg -i "$files"/morphmon-dkms_*.deb
ln -s /dev/null /etc/modules-load.d/morphmon.conf
check "the programs install" dpkg -i "$files"/trial/morph-trial_1_*.deb
# An emulated machine beside other work may take minutes to load programs into its kernel.
mkdir -p /etc/systemd/system/morphd.service.d
printf '[Service]\nTimeoutStartSec=10min\nWatchdogSec=10min\n' >/etc/systemd/system/morphd.service.d/slow.conf
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
install -D -m 755 "$files/server" /opt/trial/server
cat >/etc/systemd/system/server.service <<'UNIT'
[Unit]
Description=A server that audits itself
[Service]
User=bob
RuntimeDirectory=server
ExecStart=/opt/trial/server /run/server/socket
UNIT
cat >/usr/local/bin/clients <<'WORK'
#!/usr/bin/perl
use IO::Socket::UNIX;
while (1) {
	my $s = IO::Socket::UNIX->new(Peer => '/run/server/socket');
	if ($s) { my $answer = <$s>; }
	select(undef, undef, undef, 0.05);
}
WORK
chmod 755 /usr/local/bin/clients
cat >/etc/systemd/system/clients.service <<'UNIT'
[Unit]
Description=Clients of the server
[Service]
ExecStart=/usr/local/bin/clients
UNIT
start_stages
