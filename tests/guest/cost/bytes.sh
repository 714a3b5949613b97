#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In the guest: what each kind of work leaves in the stream; mixed.sh, tests/guest/stream.c.
set -eu
cd "$(dirname "$0")"
insmod "$BUILD/kmod/$KERNEL/morphmon.ko" ring_kib=1024
for kind; do
	echo "kind $kind"
	"$BUILD/guest/stream" ./mixed.sh "$kind"
done
