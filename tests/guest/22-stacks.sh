#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The callers of user code, with frame pointers, cut off at the depth asked for.
. "$(dirname "$0")/lib.sh"
for depth in 8 127; do
	load stack_depth=$depth
	check stacks $depth
	unload
done
finish
