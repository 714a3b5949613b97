#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With MORPH_START_LAZY, a process is described when a sample needs it; most never are.
. "$(dirname "$0")/lib.sh"
load ring_kib=1024
check late
unload
load ring_kib=1024 stack_depth=16
check late
unload
finish
