#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What user code has in its registers comes with its samples, where it is asked for.
. "$(dirname "$0")/lib.sh"
for mode in hrtimer tick; do
	load mode=$mode
	check registers
	unload
done
load stack_depth=8
check registers
unload
finish
