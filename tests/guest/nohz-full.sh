#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# boot: nohz_full=1
# long
# A CPU whose tick is off while one program runs there is sampled like any
# other, and its tick stays off.
. "$(dirname "$0")/lib.sh"
[ "$(cat /sys/devices/system/cpu/nohz_full)" = 1 ] || { echo "skip: this kernel has no nohz_full"; exit 77; }
load
check cpus nohz
unload
# The kernel checks such a CPU from another one each second. On a busy emulator the check may come
# after three seconds, and the kernel warns.
dmesg | grep -E 'BUG:|WARNING:|KASAN|UBSAN|ODEBUG|Oops|possible .* locking|suspicious RCU' |
	grep -v sched_tick_remote >trouble && fail "$(head -n 1 trouble)"
finish
