#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The callers of a stripped program without frame pointers, by unwind rows; and hostile rows.
. "$(dirname "$0")/lib.sh"
fails 'Invalid parameters\|Invalid argument' insmod "$KO" rows_mib=4097
load
check walk requests
check walk stacks "$GUEST/walked"
unload
load rows_mib=1
check walk full
unload
finish
