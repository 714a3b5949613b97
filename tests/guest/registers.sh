#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples of user code include the registers if START asks for them.
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
