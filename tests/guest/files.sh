#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that ended processes had mapped do not stay in the kernel's memory.
. "$(dirname "$0")/lib.sh"
load
check files
unload
finish
