#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The module's parameters, the device's modes, every request, valid and
# invalid; and who may open the device.
. "$(dirname "$0")/lib.sh"

for bad in rate=0 rate=20001 rate=x jitter=101 ring_kib=15 ring_kib=17 ring_kib=131072 ring_kib=0 \
	mode=x mode= stack_depth=128; do
	fails 'Invalid parameters\|Numerical result out of range\|Invalid argument' insmod "$KO" "$bad"
	! grep -q '^morphmon' /proc/modules || { fail "$bad was taken"; rmmod morphmon; }
done

load
[ "$(stat -c %a /dev/morphmon)" = 640 ] || fail "mode $(stat -c %a /dev/morphmon)"
fails 'Permission denied' setpriv --reuid=65534 --regid=65534 --clear-groups \
	sh -c 'exec 3< /dev/morphmon'
check requests
unload

# While the device is open: no second reader, no rmmod. After a kill, both work.
load
"$GUEST/requests" hold >held &
holder=$!
until [ -s held ]; do
	kill -0 $holder 2>/dev/null || { fail "no holder: $(cat held)"; break; }
	sleep 0.05
done
"$GUEST/requests" open
[ $? = 16 ] || fail "a second open is not EBUSY"
fails 'in use\|temporarily unavailable\|busy' rmmod morphmon
kill -KILL $holder
wait $holder 2>/dev/null
"$GUEST/requests" open || fail "cannot open after the reader was killed: $?"
check rings conserve hrtimer 50
unload
finish
