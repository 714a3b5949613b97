#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is said of a process once a sample needs it, and of most of them never.
. "$(dirname "$0")/lib.sh"
load ring_kib=1024
check late
unload
load ring_kib=1024 stack_depth=16
check late
unload
finish
