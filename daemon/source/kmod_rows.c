// SPDX-License-Identifier: Apache-2.0
/* kmod_rows - stacks from the kernel module; see kmod_rows.h. */
#include "daemon/source/kmod_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/source/kmod_request.h"
#include "kmod/uapi/morph_dev.h"
#include "kmod/uapi/morph_rows.h"
#include "libprof/unwind/row_format.h"
#include "libprof/unwind/rows_laid.h"

#define STACK_DEPTH 127 /* the most that the module gives */

/* The module's header and libprof's describe the same bytes. */
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(MORPH_ROWS_MAGIC, MP_ROWS_MAGIC);
SAME(MORPH_ROWS_PAGE, MP_ROWS_PAGE);
SAME(MORPH_ROWS_PAGES_MAX, MP_ROWS_PAGES_MAX);
SAME(MORPH_ROWS_RULES_MAX, MP_ROWS_RULES_MAX);
SAME(MORPH_ROWS_MAX, MP_ROWS_MAX);
SAME(MORPH_NR_ROW_CFA, MP_NR_ROW_CFA);
SAME(MORPH_ROW_PLT, MP_ROW_PLT);
SAME(MORPH_NR_ROW_SAVED, MP_NR_ROW_SAVED);
SAME(MORPH_ROW_AT_RBP, MP_ROW_AT_RBP);
SAME(MORPH_ROW_SIGNAL, MP_ROW_SIGNAL);
SAME(MORPH_ROW_BOTTOM, MP_ROW_BOTTOM);
SAME(MORPH_NR_ROW_STOP, MP_NR_ROW_STOP);
SAME(MORPH_ROW_STOP_NO_ROW, MP_ROW_STOP_NO_ROW);
SAME(sizeof(struct morph_rows_head), sizeof(struct mp_rows_head));
SAME(offsetof(struct morph_rows_head, base), offsetof(struct mp_rows_head, base));
SAME(sizeof(struct morph_row_rule), sizeof(struct mp_row_rule));
SAME(offsetof(struct morph_row_rule, cfa_off), offsetof(struct mp_row_rule, cfa_off));
SAME(offsetof(struct morph_row_rule, ra_off), offsetof(struct mp_row_rule, ra_off));
SAME(offsetof(struct morph_row_rule, stop), offsetof(struct mp_row_rule, stop));
SAME(sizeof(struct morph_row), sizeof(struct mp_row));
SAME(offsetof(struct morph_row, number), offsetof(struct mp_row, number));

int md_kmod_rows_ask(int fd, uint32_t abi_minor, struct mp_err *err)
{
	__u32 depth = STACK_DEPTH;
	int ret;

	if (abi_minor < 8)
		return mp_err_set(err, ENOTSUP,
				  "morphmon.ko speaks record format %u.%u, stacks came with 1.8",
				  MORPH_ABI_MAJOR, abi_minor);
	ret = md_kmod_request(fd, MORPH_IOC_STACKS, &depth);
	if (ret == -EPERM)
		return mp_err_set(err, EPERM,
				  MORPH_DEV_PATH
				  ": stacks of any program are walked with the reader's "
				  "rows: CAP_PERFMON is needed");
	return ret ? mp_err_set(err, -ret, MORPH_DEV_PATH ": cannot ask for stacks: %s",
				strerror(-ret))
		   : 0;
}

static void identify(const struct morph_mmap *mmap, struct morph_rows *r)
{
	if (!mmap) {
		r->flags = MORPH_ROWS_VDSO;
		return;
	}
	r->dev_major = mmap->dev_major;
	r->dev_minor = mmap->dev_minor;
	r->ino = mmap->ino;
	if (mmap->task.flags & MORPH_MMAP_GENERATION) {
		r->flags = MORPH_ROWS_GENERATION;
		r->ino_generation = mmap->ino_generation;
	}
	if (mmap->build_id_len <= MORPH_BUILD_ID_MAX) {
		r->build_id_len = mmap->build_id_len;
		memcpy(r->build_id, mmap->build_id, r->build_id_len);
	}
}

int md_kmod_rows_give(int fd, const struct md_source_rows *rows)
{
	struct morph_rows r = {
		.nr_segments = rows->nr_segments,
		.segments = (uintptr_t)rows->segments,
	};
	void *bytes = NULL;
	size_t size = 0;
	int ret;

	if (rows->nr_segments > MORPH_ROWS_SEGMENTS_MAX)
		return -EFBIG;
	if (rows->rows) {
		bytes = mp_rows_flatten(rows->rows, &size);
		if (!bytes)
			return -ENOMEM;
	}
	identify(rows->mmap, &r);
	r.bytes = (uintptr_t)bytes;
	r.size = size;
	ret = md_kmod_request(fd, MORPH_IOC_ROWS, &r);
	free(bytes);
	return ret;
}
