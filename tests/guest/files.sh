#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-all: many files in an emulator
# one kernel
# Files that ended processes had mapped do not stay in the kernel's memory.
. "$(dirname "$0")/lib.sh"
# A process that is sampled is reported with 360 KiB of names. In a slow guest all 16 may be.
load ring_kib=8192
check files
unload
finish
