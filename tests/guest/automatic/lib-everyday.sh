# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# Shared by the stages about everyday use; sourced behind lib-automatic.sh.
kinds=layout,edges,edges+threads,meter
worker_dir=/var/lib/morph-worker

# name_in_place PROGRAM VERSION: the file at the path is the package's, or a version with a name that is proved to
# do the same; prints the name. The worker may swap meanwhile, so a copy is looked at.
name_in_place() {
	local file name=''
	cp "/usr/bin/$1" /root/in-place
	if cmp -s /root/in-place "$(original "$2" "$1")"; then
		echo original
		return
	fi
	for file in "$worker_dir"/*/{counting,metered-original,metered-new,output}; do
		! cmp -s /root/in-place "$file" || name=${file##*/}
	done
	[ -n "$name" ] || { echo "$1: no version of the worker's"; morph history "/usr/bin/$1"; return 1; }
	echo "$name"
	morph-optimize verify --report=none --kind=$kinds "$(original "$2" "$1")" /root/in-place
}
# in_place PROGRAM NAME...: one of these versions is at the path. Does no more than compare: a window may be short.
in_place() {
	local name
	for name in "${@:2}"; do
		! cmp -s "/usr/bin/$1" "$worker_dir"/*/"$name" || return 0
	done
	return 1
}
# Each look takes seconds of an emulated machine.
rarely() { sleep 8; "$@"; }
worker_pid() { systemctl show -P MainPID morph-optimize; }
# The power goes: nothing more is written to the disk.
# cut_power STAGE PACE: the worker's times behind it
cut_power() {
	sed -i "s/PACE=.*/PACE=$2/" /etc/systemd/system/morph-optimize.service.d/short.conf
	sync /etc/systemd/system/morph-optimize.service.d/short.conf
	echo "end   stage-$1.sh"
	sleep 3
	echo b >/proc/sysrq-trigger
	sleep 60
}
not_denied() { ! journalctl -q -b -k -o cat | grep 'apparmor="DENIED".*morph-worker'; }
# What the worker complains about, but for what ends a measurement as it should.
worker_is_well() {
	local all
	all=$(journalctl -q -b -p warning -o cat -u morph-optimize -u morph-optimize.socket
		journalctl -q -b -o cat -u morph-optimize | grep -iE 'cannot|denied|not permitted|could not|failed|no such')
	[ -z "$all" ] || { echo "$all" | sort | uniq -c | head -n 12; return 1; }
}
