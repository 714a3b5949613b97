#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The callers of user code by frame pointers, limited to the given depth.
. "$(dirname "$0")/lib.sh"
for depth in 8 127; do
	load stack_depth=$depth
	check stacks $depth
	unload
done
finish
