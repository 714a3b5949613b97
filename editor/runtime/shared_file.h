/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_file - size and header of a file that several processes map. Used by attach, ring and
 * call_clock.
 */
#ifndef ME_RUNTIME_SHARED_FILE_H
#define ME_RUNTIME_SHARED_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "editor/runtime/system.h"

/*
 * Give an empty file a size of @bytes, and reserve space: a write without space would end the program.
 * Return: false if the file is not a regular one, has another size or cannot grow.
 */
static inline bool has_size(int fd, uint64_t bytes)
{
	struct rlimit limit;
	struct stat st;
	long ret;

	if (call4(SYS_fstat, fd, (long)&st, 0, 0) || !S_ISREG(st.st_mode) ||
	    (st.st_size && (uint64_t)st.st_size != bytes))
		return false;
	/* Growing beyond the limit raises a signal that ends the program. */
	if (!st.st_size &&
	    (call4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) || limit.rlim_cur < bytes))
		return false;
	ret = call4(SYS_fallocate, fd, 0, 0, (long)bytes);
	if (ret == -EOPNOTSUPP || ret == -ENOSYS)
		ret = st.st_size ? 0 : call4(SYS_ftruncate, fd, (long)bytes, 0, 0);
	return !ret;
}

/* Write @want to a header's word that is 0, perhaps while other processes do. Return: the word is @want. */
static inline bool claim_word(uint64_t *word, uint64_t want)
{
	uint64_t was = 0;

	return __atomic_compare_exchange_n(word, &was, want, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST) ||
	       was == want;
}

#endif
