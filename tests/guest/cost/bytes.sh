#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In the guest: what each kind of work leaves in the stream, said when a sample needs it, as the
# service has it, and said at once; mixed.sh, tests/guest/stream.c.
set -eu
cd "$(dirname "$0")"
insmod "$BUILD/kmod/$KERNEL/morphmon.ko" ring_kib=1024
for kind; do
	echo "kind $kind late"
	LAZY=1 "$BUILD/guest/stream" ./mixed.sh "$kind"
	echo "kind $kind at-once"
	"$BUILD/guest/stream" ./mixed.sh "$kind"
done
