#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a power cut in the middle of a trial: the trial comes to its verdict, and the policy does what follows from it. A
# package is upgraded in the middle of the next trial, and wins at once. `morph off' in the middle of a round.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh
# shellcheck source=tests/guest/automatic/lib-everyday.sh
. /root/files/lib-everyday.sh
apt_get() { apt-get -q -y -o Dpkg::Use-Pty=0 --allow-downgrades "$@"; }
unpack 2

check "after the cut, what is in place is proved and has a name" name_in_place spread 1
sed "s/^/note  in place: /" "$log"
check "the machine starts" is_sound
check "the trial comes to its end" within 2400 rarely in_state spread 'adopted kept not-faster undecided'
check "the file fits its state" fits_its_state spread 1
check "everyday use decided" has_steps spread 1 '.*count:begun.*counted:done.*tried:faster adopt:done.*'
echo "note  $(state_of spread), $(steps spread 1)"
check "spread is adopted" in_state spread 'adopted kept'
faster() { [ "$(listed spread '.measured.lowest > 1 and .measured.lowest <= .measured.ratio')" = true ]; }
check "the trial measured how much faster it is" faster
check "each step is in the history once" each_step_once
adds_up() { morph-stats --db="$db" status --check | grep 'checked and sound'; }
check "the store's ledgers add up" adds_up
for page in "" "explain spread" "history /usr/bin/spread"; do
	# shellcheck disable=SC2086
	morph $page 2>&1 | cut -c1-160 | sed "s/^/note  /"
done

in_trial() { sleep 5; in_state spread trying >/dev/null && in_place spread metered-original metered-new output; }
# ---- an upgrade in the middle of a trial
sed -i 's/repository /repository-2 /' /etc/apt/sources.list
check "apt reads the repository" apt_get update
check "apt upgrades the programs" apt_get upgrade
check "what dpkg wrote is there" is_original spread 2
check "the next round comes to its trial" within 2400 in_trial
check "apt writes the first version again, in the middle of the trial" apt_get install "$files"/trial/morph-trial_1_*.deb
check "what dpkg wrote is there at once" is_original spread 1
check "dpkg finds every file as it wrote it" dpkg --verify morph-trial
noticed() { morph history --json /usr/bin/spread | jq -e '[.decisions[] | select(.step == "upgrade")] | length >= 2'; }
check "the history tells of both upgrades" within 600 rarely noticed
check "the programs print what they printed" test "$(spread 777)" = "$("$(original 1 spread)" 777)"

# ---- off, while a version is in place
check "a version is in place again" within 2400 in_place spread counting metered-original metered-new output
check "morph off" morph off
sed 's/^/note  /' "$log"
check "the original is back" is_original spread 1
check "dpkg finds every file as it wrote it" dpkg --verify morph-trial
check "the settings are gone" is_gone /etc/morph/on.conf
for unit in service timer path socket; do
	check "morph-optimize.$unit has ended" fails systemctl is-active morph-optimize.$unit
done
check "the worker's timer is disabled" fails systemctl is-enabled morph-optimize.timer
sleep 30
check "and stays" is_original spread 1
no_versions() { ! find "$worker_dir" -name '*counting*' -o -name '*metered*' | grep .; }
check "no version is left" no_versions
check "morphd runs" runs
check "AppArmor denied the worker nothing" not_denied
check "nothing is wrong in the kernel's log" kernel_is_well
check "nor in the worker's" worker_is_well
check "no unit has failed" is_sound
