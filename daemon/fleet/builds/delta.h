// SPDX-License-Identifier: Apache-2.0
/*
 * delta - the difference of an output to its original, as one zstd frame with the original as prefix
 * (`zstd --patch-from' makes the same). A builder makes it. A host applies it in a process that can do
 * nothing else, since anybody may have written the delta. Proves nothing: the caller compares the
 * output's hash, and the verifier judges the output.
 */
#ifndef MD_FLEET_DELTA_H
#define MD_FLEET_DELTA_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

/* Bytes of memory and seconds of a CPU that applying a delta may take, beside the mapped files. */
#define MD_DELTA_MEMORY	 (UINT64_C(128) << 20)
#define MD_DELTA_SECONDS 120

/* An output is never larger than this: as in daemon/worker, where a version is taken over. */
static inline uint64_t md_delta_output_max(uint64_t original_size)
{
	return 4 * original_size + (UINT64_C(64) << 20);
}

/* Makes the delta. Ownership: free(*@delta). Return: 0, -EFBIG, -ENOMEM, -EIO. */
int md_delta_make(const void *original, size_t original_size, const void *output,
		  size_t output_size, uint8_t **delta, size_t *delta_size, struct mp_err *err);

/*
 * md_delta_apply - writes the output of @output_size bytes to @out_fd, an empty file. The bytes go to
 * the file's pages, so memory stays bounded, whatever the delta says.
 * Return: 0; -EBADMSG: the delta is damaged, or gives another size; -ENOSPC; -errno.
 */
int md_delta_apply(const void *original, size_t original_size, const void *delta, size_t delta_size,
		   int out_fd, size_t output_size, struct mp_err *err);

#endif
