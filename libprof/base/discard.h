// SPDX-License-Identifier: Apache-2.0
/*
 * discard - gives memory back to the system while the array that it belongs to is still being read. So
 * a large array can be copied without being there twice.
 */
#ifndef MP_DISCARD_H
#define MP_DISCARD_H

#include <stdint.h>
#include <sys/mman.h>

#define MP_DISCARD_PAGE UINT64_C(4096)

/*
 * mp_discard - the bytes from @from to before @to, memory from malloc(), will not be read again before
 * they are written. Whole pages of them become zeros and take no memory. Return: @from for the next call,
 * for what follows @to.
 */
static inline const void *mp_discard(const void *from, const void *to)
{
	uintptr_t first = ((uintptr_t)from + MP_DISCARD_PAGE - 1) & ~(MP_DISCARD_PAGE - 1);
	uintptr_t end = (uintptr_t)to & ~(MP_DISCARD_PAGE - 1);

	if (first >= end)
		return from;
	/* If that fails, the memory stays there, and nothing else happens. */
	(void)madvise((void *)first, end - first, MADV_DONTNEED);
	return (const void *)end;
}

#endif
