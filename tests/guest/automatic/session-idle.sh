#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The collector sleeps while nothing happens, with each source.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh

check "the machine starts" is_sound
check "morphd runs" runs
switches() { cat "/proc/$(pid)"/task/*/status | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'; }
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$(pid)/stat"; }
# rests_with SOURCE: for a minute
rests_with() {
	local before after wakes spent
	sed -i "s/^#*source = .*/source = $1/" /etc/morph/morphd.conf
	systemctl restart morphd
	within 600 collects_with "$1" >/dev/null || { runs; collects_with "$1"; return 1; }
	sleep 20
	before="$(pid) $(switches) $(ticks)"
	sleep 60
	after="$(pid) $(switches) $(ticks)"
	read -r wakes spent < <(echo "$before $after" | awk -v hz="$(getconf CLK_TCK)" '$1 == $4 {
		printf "%.2f %.3f\n", ($5 - $2) / 60, 100 * ($6 - $3) / hz / 60 }')
	echo "note  morphd, with the source $1, wakes $wakes times a second, and takes $spent % of an emulated CPU" >>"$log.rest"
	awk -v w="$wakes" 'BEGIN { exit !(w != "" && w < 2) }' || { echo "$wakes a second"; false; }
}
for source in perf bpf kmod; do
	[ $source != kmod ] || check "the module is loaded" modprobe morphmon
	check "with $source, morphd wakes less than twice a second while nothing happens" rests_with $source
done
cat "$log.rest"
sed -i 's/^source = .*/source = auto/' /etc/morph/morphd.conf
systemctl stop morphd && modprobe -r morphmon && systemctl start morphd
check "morphd goes on without the module" within 600 fails collects_with kmod
status | jq -r '.sessions | max_by(.start_s) | "note  the source is \(.collector): \(.why)"'
check "nothing is wrong in the kernel's log" kernel_is_well
