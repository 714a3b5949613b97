// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_ring - one CPU's ring of the kernel module, as mapped: memory in, records out.
 *
 * Decides what in the ring is a record, where an open one ends for now, and how far the tail
 * may go. It makes no system call. The memory is the module's: everything is checked, and read
 * once only. Called by kmod_merge; kmod/uapi/morph_dev.h has the layout.
 */
#ifndef MD_KMOD_RING_H
#define MD_KMOD_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/record.h"
#include "kmod/uapi/morph_dev.h"
#include "libprof/err.h"

/* What md_kmod_ring_take() gives next. */
struct md_kmod_next {
	uint64_t time_ns;  /* of the record's header; UINT64_MAX: nothing is there */
	uint64_t from, to; /* positions: of the record, or of samples in one that is open */
	uint16_t type;
	bool is_hidden;
};

/*
 *	tail  pos           done        limit
 *	 |     |             |            |
 *	 [read][SAMPLES: read ; new ones  ]   of an open record what is before @done was given out
 */
struct md_kmod_ring {
	struct morph_tail *tail;
	const struct morph_head *head;
	const uint8_t *data;
	uint64_t size_bytes; /* of @data */
	uint32_t cpu;
	uint64_t pos;	/* where the record begins that is read */
	uint64_t done;	/* what of it was given out ends here; @pos: nothing */
	uint64_t limit; /* the head, when it was looked at */
	/* Samples at these positions are marked; no record given out has some in and some not. */
	uint64_t hide_from, hide_to;
	struct md_kmod_next next;
};

/* @size_bytes: as asked for when it was mapped. Return: 0, -EBADMSG where it is no ring. */
int md_kmod_ring_init(struct md_kmod_ring *ring, struct morph_tail *tail,
		      const struct morph_head *head, const uint8_t *data, uint64_t size_bytes,
		      struct mp_err *err);
/* Where the head is now; any value. */
uint64_t md_kmod_ring_head(const struct md_kmod_ring *ring);
/* Looks at the head: what came since may be taken. Return: 0 or -EBADMSG. */
int md_kmod_ring_refresh(struct md_kmod_ring *ring, struct mp_err *err);
/*
 * Copies what @ring->next says to the end of @out, checked as md_record_next() does, and looks at
 * what follows. Of an open record, samples go out with its header in front, each once.
 * Nothing is added where there are none. Return: 0, -EBADMSG, -ENOMEM.
 */
int md_kmod_ring_take(struct md_kmod_ring *ring, struct md_buf *out, struct mp_err *err);
/* Gives what was taken back to the writer. */
void md_kmod_ring_release(struct md_kmod_ring *ring);

#endif
