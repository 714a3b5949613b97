#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# FORK, EXEC, MMAP and EXIT of a program say what the kernel says of it elsewhere: where its code is mapped
# from which file, the files' build-ids, the CPU time.
. "$(dirname "$0")/lib.sh"
load
check events
unload
finish
