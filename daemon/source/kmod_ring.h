// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_ring - takes records out of one CPU's ring of the kernel module. Called by kmod_merge.
 *
 * Decides what is a valid record, where an open record currently ends, and how far the tail may
 * move. Makes no system call. The module may change the memory: each value is read once, then
 * checked. kmod/uapi/morph_dev.h defines the layout.
 */
#ifndef MD_KMOD_RING_H
#define MD_KMOD_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/record/record.h"
#include "kmod/uapi/morph_dev.h"
#include "libprof/base/err.h"

/* The records that md_kmod_ring_take() gives next. */
struct md_kmod_next {
	uint64_t time_ns;  /* from the record's header; UINT64_MAX: nothing is there */
	uint64_t from, to; /* positions of the record, or of samples in an open one */
	uint16_t type;
	bool is_hidden;
};

/*
 * An open record: its part before @done was given out already.
 *
 *	tail  pos           done        limit
 *	 |     |             |            |
 *	 [read][SAMPLES: read ; new ones  ]
 */
struct md_kmod_ring {
	struct morph_tail *tail;
	const struct morph_head *head;
	const uint8_t *data;
	uint64_t size_bytes; /* size of @data */
	uint32_t cpu;
	uint64_t pos;	/* start of the current record */
	uint64_t done;	/* end of the part that was given out; equals @pos: nothing yet */
	uint64_t limit; /* the head when it was last read */
	/*
	 * Samples in this range are hidden. No record given out lies on both sides of its
	 * bounds.
	 */
	uint64_t hide_from, hide_to;
	struct md_kmod_next next;
};

/* @size_bytes: as requested by mmap(). Return: 0, -EBADMSG: not a ring. */
int md_kmod_ring_init(struct md_kmod_ring *ring, struct morph_tail *tail,
		      const struct morph_head *head, const uint8_t *data, uint64_t size_bytes,
		      struct mp_err *err);
/* Return: the current head, unchecked. */
uint64_t md_kmod_ring_head(const struct md_kmod_ring *ring);
/* Reads the head, so that newer records may be taken. Return: 0 or -EBADMSG. */
int md_kmod_ring_refresh(struct md_kmod_ring *ring, struct mp_err *err);
/*
 * Copies the records described by @ring->next to the end of @out, checked like
 * md_record_next(), and finds the next ones. Samples of an open record are copied with its
 * header in front, each sample once. An open record without new samples adds nothing. Return:
 * 0, -EBADMSG, -ENOMEM.
 */
int md_kmod_ring_take(struct md_kmod_ring *ring, struct md_buf *out, struct mp_err *err);
/* Returns the space of records that were taken to the module. */
void md_kmod_ring_release(struct md_kmod_ring *ring);

#endif
