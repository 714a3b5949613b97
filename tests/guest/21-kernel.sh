#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples of kernel code lie in the functions that the program's system calls run.
. "$(dirname "$0")/lib.sh"
load
check kernel chacha
unload
finish
