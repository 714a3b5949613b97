#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the guest: the bytes in the stream for each kind of work (mixed.sh, tests/guest/programs/stream.c).
# Once with processes described when a sample needs them, as for the service, and once at once.
set -eu
cd "$(dirname "$0")"
insmod "$BUILD/kmod/$KERNEL/morphmon.ko" ring_kib=1024
for kind; do
	echo "kind $kind late"
	LAZY=1 "$BUILD/guest/stream" ./mixed.sh "$kind"
	echo "kind $kind at-once"
	"$BUILD/guest/stream" ./mixed.sh "$kind"
done
