#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples of kernel code lie in the functions that the program's system calls run.
. "$(dirname "$0")/lib.sh"
load
check kernel chacha get_random _copy copy_ rep_movs memcpy __memcpy __x64_sys_getrandom clear_ \
	syscall_enter syscall_exit entry_SYSCALL do_syscall exit_to_user asm_ sysvec
unload
finish
