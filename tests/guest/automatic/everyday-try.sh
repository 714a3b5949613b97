#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# After a power cut while a version counted: counting goes on, and a trial begins by itself; in the middle of it the power
# goes again.
# shellcheck source=tests/guest/system/lib.sh
. /root/files/lib.sh
# shellcheck source=tests/guest/automatic/lib-automatic.sh
. /root/files/lib-automatic.sh
# shellcheck source=tests/guest/automatic/lib-everyday.sh
. /root/files/lib-everyday.sh

check "after the cut, what is in place is proved and has a name" name_in_place spread 1
sed "s/^/note  in place: /" "$log"
check "the programs print what they printed" test "$(spread 777)" = "$("$(original 1 spread)" 777)"
check "the machine starts" is_sound
check "the worker's timer is active" systemctl is-active morph-optimize.timer
check "spread is tried" within 1800 rarely in_state spread trying
check "each step is in the history once" each_step_once
was_counted() { has_steps spread 1 '.*count:begun.*counted:done.*write:done verify:done.*'; }
check "it was counted, written and verified" was_counted
check "one of the two versions is in place" within 600 in_place spread metered-original metered-new output
check "the socket unit is active" systemctl is-active morph-optimize.socket
pairs() { listed spread .reason | grep -E '^[1-9][0-9]* pairs of blocks'; }
check "pairs of blocks are compared" within 900 rarely pairs
morph >"$log.page" 2>&1
sed 's/^/note  /' "$log.page"
says_trying() { grep -E '^Next, by itself: /usr/bin/spread, being tried' "$log.page"; }
check "morph says what happens by itself" says_trying
morph explain spread 2>&1 | sed 's/^/note  /'
check "AppArmor denied the worker nothing" not_denied
check "nothing is wrong in the kernel's log" kernel_is_well
check "nor in the worker's" worker_is_well
check "one of the two versions is in place again" within 600 in_place spread metered-original metered-new output
cut_power 2-try 0.05
