#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples and events add up: read all the while, in both modes; lost, exactly as many as is said;
# with a reader that writes rubbish; over many starts and stops.
. "$(dirname "$0")/lib.sh"
load
check rings conserve hrtimer $((1000 + LONG * 9000))
check rings conserve tick $((1000 + LONG * 9000))
check rings restart $((20 + LONG * 180))
unload
load ring_kib=16 stack_depth=8
check rings overflow
check rings rubbish $((1500 + LONG * 28500))
unload
finish
