/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system - system calls without a library, and access to the bases of %fs and %gs. Used
 * by attach and thread.
 */
#ifndef ME_RUNTIME_SYSTEM_H
#define ME_RUNTIME_SYSTEM_H

#include <asm/prctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "editor/base/runtime.h"

static inline long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long call4(long nr, long a, long b, long c, long d)
{
	return call6(nr, a, b, c, d, 0, 0);
}

static inline long call1(long nr, long a)
{
	return call6(nr, a, 0, 0, 0, 0, 0);
}

static inline bool failed(long ret)
{
	return ret < 0 && ret >= -4095;
}

static inline uint64_t read_fs(const struct me_thread_state *state)
{
	uint64_t base = 0;

	if (state->fsgsbase)
		__asm__ volatile("rdfsbase %0" : "=r"(base));
	else
		call4(SYS_arch_prctl, ARCH_GET_FS, (long)&base, 0, 0);
	return base;
}

static inline uint64_t read_gs(const struct me_thread_state *state)
{
	uint64_t base = 0;

	if (state->fsgsbase)
		__asm__ volatile("rdgsbase %0" : "=r"(base));
	else
		call4(SYS_arch_prctl, ARCH_GET_GS, (long)&base, 0, 0);
	return base;
}

static inline void write_gs(const struct me_thread_state *state, uint64_t base)
{
	if (state->fsgsbase)
		__asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
	else
		call4(SYS_arch_prctl, ARCH_SET_GS, (long)base, 0, 0);
}

#endif
