#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An administrator installs morph and names three programs. Everything else happens by itself: each is
# optimised, audited, and adopted where it is faster, and morph says by how much.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh

check "the machine starts" is_sound
apt_get() { apt-get -q -y -o Dpkg::Use-Pty=0 "$@"; }
check "apt reads the repository" apt_get update
check "apt installs the three programs" apt_get install morph-trial
unpack 1
systemctl -q enable --now answerd.service workload.service

check "apt installs morph" apt_get install "$files/morph.deb"
check "morphd is enabled and runs" runs
disabled() { [ "$(systemctl is-enabled "$1" 2>&1)" = disabled ] && ! systemctl -q is-active "$1"; }
check "the worker's timer is disabled" disabled morph-optimize.timer
check "the worker's path unit is disabled" disabled morph-optimize.path

# A short day: every moment counts as idle, probation lasts a minute.
cat >/etc/morph/morph.conf <<'CONF'
share = 0
min-samples = 500
load = 1000
busy = 100%
audit-time = 3m
probation = 1m
CONF
watch() { morph watch add --mode=adopt "$@" | tee -a /root/watched; return "${PIPESTATUS[0]}"; }
check "watch spread" watch /usr/bin/spread -- /usr/bin/spread 300000
check "which enables the worker, and says so" grep morph-optimize.timer /root/watched
check "watch plain" watch /usr/bin/plain -- /usr/bin/plain 2000000
check "watch answerd" watch --unit=answerd.service /usr/bin/answerd -- /usr/bin/answer-bench 60000
check "the worker's timer is enabled" systemctl is-enabled morph-optimize.timer
check "the worker's timer is active" systemctl is-active morph-optimize.timer

# AppArmor: the worker and what it starts run in its profile.
profile_loaded() { grep -x 'morph-worker (enforce)' /sys/kernel/security/apparmor/profiles; }
check "the worker's AppArmor profile is loaded, in enforce mode" profile_loaded
confined() {
	local pid
	pid=$(systemctl show -P MainPID morph-optimize)
	[ "$pid" != 0 ] && grep -q '^morph-worker (enforce)' "/proc/$pid/attr/current"
}
check "the worker runs confined" within 300 confined

# From here on nothing but looks.
started=$SECONDS
server=$(systemctl show -P MainPID answerd)
within 1200 all_have_ended
echo "note  the rounds took $((SECONDS - started)) s in the machine"
for p in $programs; do
	check "$p: its round has ended" in_state "$p" 'kept adopted not-faster undecided refused advised'
	check "$p: the file fits its state" fits_its_state "$p" 1
	echo "note  $p: $(state_of "$p"), $(steps "$p" 1)"
done
adopted='ask:watch profile:train write:done verify:done audit:faster adopt:done'
for p in spread answerd; do
	check "$p: is adopted" in_state "$p" 'adopted kept'
	check "$p: each step was taken, in order" has_steps "$p" 1 "$adopted( restart( version)?:[a-z]+)?( probation:.*)?"
	faster() { [ "$(listed "$p" '.measured.lowest > 1 and .measured.lowest <= .measured.ratio')" = true ]; }
	check "$p: an audit measured how much faster" faster
	says_how_much() { morph >"$log.page" && grep -E "$p .*[0-9]\.[0-9]+" "$log.page" || { cat "$log.page"; false; }; }
	check "$p: morph says by how much" says_how_much
done
was_audited() { steps plain 1 | grep -E 'audit:|write:(nothing|refused)'; }
check "plain: was audited, or morph said why not" was_audited
check "the programs print what they printed" test "$(spread 777)" = "$("$(original 1 spread)" 777)"
restarted() { [ "$(systemctl show -P MainPID answerd)" != "$server" ] && systemctl -q is-active answerd; }
check "the server was restarted with its new version" within 120 restarted
running_new() { cmp "/proc/$(systemctl show -P MainPID answerd)/exe" /usr/bin/answerd; }
check "and runs it" running_new
check "each step is in the history once" each_step_once
check "probation ends" within 900 in_state spread kept
adds_up() { morph-stats --db="$db" status --check | grep 'checked and sound'; }
check "the store's ledgers add up" adds_up
check "nothing is wrong in the kernel's log" kernel_is_well
not_denied() { ! journalctl -q -b -k -o cat | grep 'apparmor="DENIED".*morph-worker'; }
check "AppArmor denied the worker nothing that it needs" not_denied
morph 2>/dev/null | sed 's/^/note  /'
show_rounds 2>&1 | cut -c1-180 | sed 's/^/note  /'
