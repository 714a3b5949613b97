#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# FORK, EXEC, MMAP and EXIT of a program agree with other information from the kernel: the mappings
# of its code, their files, the files' build-ids, the CPU time.
. "$(dirname "$0")/lib.sh"
load
check events
unload
finish
