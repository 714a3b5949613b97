// SPDX-License-Identifier: Apache-2.0
/* kmod_ring - one ring of the kernel module; see kmod_ring.h. */
#include "daemon/source/kmod_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define RING_BYTES_MAX (UINT64_C(1) << 31)

static int malformed(const struct md_kmod_ring *ring, const char *what, struct mp_err *err)
{
	return mp_err_set(err, EBADMSG,
			  MORPH_DEV_PATH ": CPU %u's ring is malformed at byte %" PRIu64 ": %s",
			  ring->cpu, ring->pos, what);
}

int md_kmod_ring_init(struct md_kmod_ring *ring, struct morph_tail *tail,
		      const struct morph_head *head, const uint8_t *data, uint64_t size_bytes,
		      struct mp_err *err)
{
	*ring = (struct md_kmod_ring){
		.tail = tail,
		.head = head,
		.data = data,
		.size_bytes = size_bytes,
		.cpu = head->cpu,
		.pos = tail->tail,
		.done = tail->tail,
		.limit = tail->tail,
		.next = {.time_ns = UINT64_MAX},
	};
	if (head->ring_bytes != size_bytes || size_bytes < 4096 || size_bytes > RING_BYTES_MAX ||
	    size_bytes & (size_bytes - 1))
		return malformed(ring, "its size is not the one that morphmon.ko reported", err);
	if (ring->pos % MORPH_RECORD_ALIGN)
		return malformed(ring, "its tail is not aligned", err);
	return 0;
}

uint64_t md_kmod_ring_head(const struct md_kmod_ring *ring)
{
	/* Pairs with the module's release: everything before the head is written. */
	return __atomic_load_n(&ring->head->head, __ATOMIC_ACQUIRE);
}

static const uint8_t *at(const struct md_kmod_ring *ring, uint64_t pos)
{
	return ring->data + (pos & (ring->size_bytes - 1));
}

/* Return: true for types that a producer may write. Only morphd may write MODULE records. */
static bool is_from_kernel(uint16_t type)
{
	return type != MORPH_REC_MODULE && type != MORPH_REC_MODULE_MAP &&
	       type != MORPH_REC_MODULE_ENDS && type != MORPH_REC_MODULE_PATHS &&
	       type != MORPH_REC_MODULE_OUTPUT && type != MORPH_REC_MODULE_PIECES &&
	       type != MORPH_REC_MODULE_UNWIND && type != MORPH_REC_USER_STACK &&
	       type != MORPH_REC_MODULE_CALLS;
}

static uint64_t time_of(const struct md_kmod_ring *ring)
{
	uint64_t time_ns;

	memcpy(&time_ns, at(ring, ring->pos) + sizeof(struct morph_record), sizeof(time_ns));
	/* UINT64_MAX is reserved for "nothing there". */
	return time_ns == UINT64_MAX ? time_ns - 1 : time_ns;
}

static void cut_at(struct md_kmod_next *next, uint64_t edge)
{
	if (next->from < edge && edge < next->to)
		next->to = edge;
}

/*
 * Finds the records to take next. Reads the header in one access, since the size of an open
 * record grows. The size may already reach past @limit; that part must not be read yet.
 */
static int find_next_record(struct md_kmod_ring *ring, struct mp_err *err)
{
	struct md_kmod_next *next = &ring->next;
	struct morph_record record;
	uint64_t word, end;

	next->time_ns = UINT64_MAX;
	while (ring->done < ring->limit) {
		word = __atomic_load_n((const uint64_t *)at(ring, ring->pos), __ATOMIC_RELAXED);
		memcpy(&record, &word, sizeof(record));
		if (record.size < sizeof(record) || record.size % MORPH_RECORD_ALIGN ||
		    record.size > ring->size_bytes - (ring->pos & (ring->size_bytes - 1)))
			return malformed(ring, "a record has an impossible size", err);
		if (!is_from_kernel(record.type))
			return malformed(ring, "a record of a type that morphmon.ko does not write",
					 err);
		end = ring->pos + record.size;
		if (record.type == MORPH_REC_SAMPLES && end > ring->limit)
			end = ring->limit;
		if (end > ring->limit)
			return malformed(ring, "a record lies beyond the head", err);
		if (end < ring->done)
			return malformed(ring, "samples that were read are gone", err);
		/* An open record that was read completely, and is followed by another one. */
		if (end == ring->done) {
			ring->pos = end;
			continue;
		}
		/* Skip padding and unknown types: a reader of ABI 1.4 does not know later ones. */
		if (record.type == MORPH_REC_PAD || record.type > MORPH_REC_MODULE_PATHS) {
			ring->pos = ring->done = end;
			continue;
		}
		if (end - ring->pos < (record.type == MORPH_REC_SAMPLES
					       ? sizeof(struct morph_samples)
					       : sizeof(struct morph_lost)))
			return malformed(ring, "a record is too short", err);
		next->type = record.type;
		next->time_ns = time_of(ring);
		next->from = ring->done;
		next->to = end;
		if (record.type == MORPH_REC_SAMPLES && next->from == ring->pos)
			next->from += sizeof(struct morph_samples);
		if (record.type == MORPH_REC_SAMPLES) {
			cut_at(next, ring->hide_from);
			cut_at(next, ring->hide_to);
		}
		next->is_hidden = next->from >= ring->hide_from && next->from < ring->hide_to;
		return 0;
	}
	return 0;
}

int md_kmod_ring_refresh(struct md_kmod_ring *ring, struct mp_err *err)
{
	uint64_t head = md_kmod_ring_head(ring);

	if (head < ring->limit || head - ring->pos > ring->size_bytes || head % MORPH_RECORD_ALIGN)
		return malformed(ring, "its head is at an impossible place", err);
	ring->limit = head;
	return find_next_record(ring, err);
}

/* Moves past what was taken. An open record stays until another one follows. */
static void advance(struct md_kmod_ring *ring)
{
	ring->done = ring->next.to;
	/* No record continues past the ring's end. */
	if (ring->next.type != MORPH_REC_SAMPLES || !(ring->done & (ring->size_bytes - 1)))
		ring->pos = ring->done;
}

int md_kmod_ring_take(struct md_kmod_ring *ring, struct md_buf *out, struct mp_err *err)
{
	const struct md_kmod_next *next = &ring->next;
	size_t bytes = next->to - next->from, header = 0, before = out->size, pos = before;
	struct morph_record *record;
	uint8_t *room;

	if (next->type == MORPH_REC_SAMPLES)
		header = sizeof(struct morph_samples);
	if (next->type == MORPH_REC_SAMPLES && !bytes) {
		advance(ring); /* an open record without samples */
		return find_next_record(ring, err);
	}
	room = md_buf_add(out, header + bytes);
	if (!room)
		return mp_err_set(err, ENOMEM, "no memory for records");
	memcpy(room, at(ring, ring->pos), header);
	memcpy(room + header, at(ring, next->from), bytes);
	record = (struct morph_record *)room;
	record->size = header + bytes;
	record->type = next->type;
	if (md_record_next(out->data, out->size, &pos, &record)) {
		out->size = before;
		return malformed(ring, "the parts of a record do not fit into it", err);
	}
	advance(ring);
	return find_next_record(ring, err);
}

void md_kmod_ring_release(struct md_kmod_ring *ring)
{
	/*
	 * Only this function writes the tail. Pairs with the module's acquire: everything
	 * before it was read.
	 */
	if (ring->tail->tail != ring->pos)
		__atomic_store_n(&ring->tail->tail, ring->pos, __ATOMIC_RELEASE);
}
