// SPDX-License-Identifier: Apache-2.0
/* delta - see delta.h. */
#include "daemon/fleet/builds/delta.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "daemon/fleet/confined.h"

/* The strongest level that needs no more memory than the window for decompression. */
#define LEVEL 19

/* ---- make ---------------------------------------------------------------------------------- */

static bool has_failed(size_t r)
{
	return ZSTD_isError(r);
}

/* The window must reach from the end of the output to the start of the original. */
static int window_log(size_t size)
{
	ZSTD_bounds bounds = ZSTD_cParam_getBounds(ZSTD_c_windowLog);
	int log = 10;

	while (log < bounds.upperBound && (UINT64_C(1) << log) < size)
		log++;
	return log;
}

int md_delta_make(const void *original, size_t original_size, const void *output,
		  size_t output_size, uint8_t **delta, size_t *delta_size, struct mp_err *err)
{
	size_t room = ZSTD_compressBound(output_size), r;
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	uint8_t *bytes = malloc(room);
	int ret = 0;

	*delta = NULL;
	if (!ctx || !bytes) {
		ret = mp_err_set(err, ENOMEM, "out of memory");
	} else if (has_failed(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, LEVEL)) ||
		   has_failed(ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog,
						     window_log(original_size + output_size))) ||
		   has_failed(ZSTD_CCtx_setParameter(ctx, ZSTD_c_enableLongDistanceMatching, 1)) ||
		   has_failed(ZSTD_CCtx_refPrefix(ctx, original, original_size))) {
		ret = mp_err_set(err, EIO, "libzstd makes no deltas");
	} else {
		r = ZSTD_compress2(ctx, bytes, room, output, output_size);
		if (has_failed(r))
			ret = mp_err_set(err, ENOMEM, "the delta cannot be made: %s",
					 ZSTD_getErrorName(r));
		*delta_size = r;
	}
	ZSTD_freeCCtx(ctx);
	if (ret)
		free(bytes);
	else
		*delta = bytes;
	return ret;
}

/* ---- apply --------------------------------------------------------------------------------- */

struct application {
	const void *original, *delta;
	size_t original_size, delta_size;
	void *output;
	size_t output_size;
};

enum applied {
	APPLIED,
	DAMAGED,
	UNREADY
};

/* In a process of its own, which reads three mappings and writes one. */
static int apply(const void *arg)
{
	const struct application *a = arg;
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t r;

	if (!ctx || has_failed(ZSTD_DCtx_refPrefix(ctx, a->original, a->original_size)))
		return UNREADY;
	r = ZSTD_decompressDCtx(ctx, a->output, a->output_size, a->delta, a->delta_size);
	return has_failed(r) || r != a->output_size ? DAMAGED : APPLIED;
}

static int run(const struct application *a, struct mp_err *err)
{
	const struct md_confined c = {.in_fd = -1,
				      .out_fd = -1,
				      .work = apply,
				      .arg = a,
				      .memory = MD_DELTA_MEMORY,
				      .seconds = MD_DELTA_SECONDS};
	struct mp_err why = {""};
	int r = md_confined_run(&c, &why);

	if (r == DAMAGED)
		return mp_err_set(err, EBADMSG, "the delta is damaged");
	if (r == UNREADY)
		return mp_err_set(err, ENOMEM, "out of memory");
	return r < 0 ? mp_err_set(err, -r, "the delta: %s", why.msg) : r;
}

int md_delta_apply(const void *original, size_t original_size, const void *delta, size_t delta_size,
		   int out_fd, size_t output_size, struct mp_err *err)
{
	struct application a = {original,   delta,	original_size,
				delta_size, MAP_FAILED, output_size};
	/* Reserved now: a write to a mapping of a full disk would end the process. */
	int r = posix_fallocate(out_fd, 0, (off_t)output_size);

	if (r)
		return mp_err_set(err, r, "%s", strerror(r));
	a.output = mmap(NULL, output_size, PROT_READ | PROT_WRITE, MAP_SHARED, out_fd, 0);
	if (a.output == MAP_FAILED)
		return mp_err_set(err, errno, "%s", strerror(errno));
	r = run(&a, err);
	munmap(a.output, output_size);
	return r;
}
