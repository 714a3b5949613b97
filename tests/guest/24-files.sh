#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernel's memory for files that were mapped once.
. "$(dirname "$0")/lib.sh"
load
check files
unload
finish
