#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples of kernel code lie in functions that the program's system calls run.
. "$(dirname "$0")/lib.sh"
# A kernel that checks each memory access spends most time on these checks.
! grep -qw __asan_load8 /proc/kallsyms || {
	echo "skip: this kernel's own checks (KASAN) take more time than what they check"
	exit 77
}
load
check kernel chacha get_random _copy copy_ rep_movs memcpy __memcpy __x64_sys_getrandom clear_ \
	syscall_enter syscall_exit entry_SYSCALL do_syscall exit_to_user asm_ sysvec
unload
finish
