#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: thousands of samples, one by one
# one kernel
# Samples and events add up: with a reader that keeps up, in both modes; with losses, which are
# counted exactly; with a reader that writes garbage; over many starts and stops.
. "$(dirname "$0")/lib.sh"
# Enough room for a reader that has to wait.
load ring_kib=1024
check rings conserve hrtimer $((200 + LONG * 99800))
check rings conserve tick $((200 + LONG * 9800))
check rings restart $((12 + LONG * 188))
LAZY=1 check rings conserve hrtimer $((200 + LONG * 99800))
LAZY=1 check rings restart $((12 + LONG * 188))
unload
load ring_kib=16 stack_depth=8
check rings overflow
check rings rubbish $((1000 + LONG * 29000))
LAZY=1 check rings overflow
LAZY=1 check rings rubbish $((1000 + LONG * 29000))
unload
finish
