#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Root's worker, confined by AppArmor, audits a server while it runs: a version that times its functions is in place
# for a while, and another user's process reads the times.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh

check "the machine starts" is_sound
profile_loaded() { grep -x 'morph-worker (enforce)' /sys/kernel/security/apparmor/profiles; }
check "the worker's AppArmor profile is loaded, in enforce mode" profile_loaded
# With about 5,000 samples, none of which is at the function's entry, the stubs may still seem to cost too much. Such
# a job is tried again with twice as many samples, which takes long here.
cat >/etc/morph/morph.conf <<'CONF'
share = 0
min-samples = 12000
load = 1000
busy = 100%
probation = 1m
CONF
cat >/etc/morph/watch.d/server.conf <<'CONF'
program = /opt/trial/server
mode = adopt
instrument = yes
user = bob
unit = server.service
audit-time = 4m
CONF
cp /opt/trial/server /root/server.was
systemctl start server clients
sed -i 's/^#rate = .*/rate = 499/' /etc/morph/morphd.conf
systemctl restart morphd
# The worker has only the time that nobody wants. In an emulated machine each look takes seconds, and the server has a
# processor for itself, so looks must be rare.
rarely() { sleep 20; "$@"; }
server_sampled() { more_of /opt/trial/server 12000; }
check "the server is sampled" within 1800 rarely server_sampled
systemctl -q start --no-block morph-optimize.service morph-optimize.timer
state_of_server() { morph list --all --json | jq -r '.programs[] | select(.path == "/opt/trial/server").state'; }
server_is() { [[ " $1 " == *" $(state_of_server) "* ]]; }
audited() { within 1800 rarely server_is auditing || { show_rounds; false; }; }
check "a version that times itself is in place" audited
confined() {
	local pid
	for pid in $(pgrep -f 'morphd run --audit'); do
		grep -q '^morph-worker (enforce)' "/proc/$pid/attr/current" && return
	done
	return 1
}
check "who reads its times is confined" within 120 confined
check "the server serves meanwhile" systemctl -q is-active server
within 1800 rarely server_is 'adopted kept not-faster undecided undone refused failed'
steps_of_server() { morph history --json /opt/trial/server | jq -r '[.decisions[] | "\(.step): \(.verdict): \(.reason)"] | join("\n")'; }
read_times() {
	steps_of_server | tee "$log.steps"
	grep -qE '^audit: (faster|not faster|undecided)' "$log.steps" && ! grep -q 'no process ran' "$log.steps"
}
check "the audit read the server's times" read_times
fits() {
	case $(state_of_server) in
	adopted | kept) morph-optimize verify /root/server.was /opt/trial/server ;;
	*) cmp /root/server.was /opt/trial/server ;;
	esac
}
check "the file fits its state" fits
check "the server serves afterwards" systemctl -q is-active server
not_denied() { ! journalctl -q -b -k -o cat | grep 'apparmor="DENIED".*morph-worker'; }
check "AppArmor denied the worker nothing that it needs" not_denied
check "nothing is wrong in the kernel's log" kernel_is_well
steps_of_server | cut -c1-180 | sed 's/^/note  /'
show_rounds 2>&1 | cut -c1-180 | sed 's/^/note  /'
