// SPDX-License-Identifier: GPL-2.0
/*
 * read - copies whole records out of a ring for a reader that does not map it.
 * Tail and records lie in memory that the reader maps, so they are not trusted: a wrong
 * size gives an error, and never an access outside of the ring. Called by dev.
 */
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "kmod/morphmon.h"
#include "kmod/ring.h"

/* The part of a ring that is being copied. */
struct cursor {
	u64 tail, head;
	char __user *to;
	size_t room, done;
};

static int copy(struct cursor *c, const void *from, size_t bytes)
{
	if (copy_to_user(c->to + c->done, from, bytes))
		return -EFAULT;
	c->done += bytes;
	return 0;
}

/*
 * Copies the samples among the @bytes of @samples that were not copied before, under the
 * same header.
 */
static int give_samples(struct morph_ring *ring, struct cursor *c,
			const struct morph_samples *samples, u32 bytes)
{
	u64 given = max_t(u64, ring->given, sizeof(*samples));
	struct morph_task header = samples->task;
	size_t before = c->done;
	int ret;

	if (given >= bytes)
		return 0;
	header.record.size = sizeof(header) + bytes - given;
	if (header.record.size > c->room - c->done)
		return -ENOSPC;
	ret = copy(c, &header, sizeof(header));
	if (!ret)
		ret = copy(c, (const u8 *)samples + given, bytes - given);
	if (ret)
		c->done = before;
	return ret;
}

/* Copies one record. Return: 0, -ENODATA (nothing more for now), -ENOSPC, -EFAULT, -EIO. */
static int copy_record(struct morph_ring *ring, struct cursor *c)
{
	u64 at = c->tail & (ring->size - 1), left = min(c->head - c->tail, ring->size - at);
	const struct morph_record *record = (const void *)(ring->records + at);
	u32 type = READ_ONCE(record->type), bytes = READ_ONCE(record->size);
	bool is_last = bytes >= c->head - c->tail;
	int ret = 0;

	/* An open record may have grown since the head was read. */
	if (type == MORPH_REC_SAMPLES && is_last)
		bytes = left;
	if (bytes < sizeof(*record) || bytes > left || !IS_ALIGNED(bytes, MORPH_RECORD_ALIGN))
		return -EIO;
	if (type == MORPH_REC_SAMPLES) {
		if (bytes < sizeof(struct morph_samples))
			return -EIO;
		ret = give_samples(ring, c, (const void *)record, bytes);
		if (!ret && is_last) {
			WRITE_ONCE(ring->given, bytes);
			return -ENODATA;
		}
	} else if (type != MORPH_REC_PAD) {
		ret = bytes > c->room - c->done ? -ENOSPC : copy(c, record, bytes);
	}
	if (ret)
		return ret;
	WRITE_ONCE(ring->given, 0);
	c->tail += bytes;
	return 0;
}

ssize_t morph_ring_read(struct morph_ring *ring, char __user *to, size_t room)
{
	struct cursor c = {
		/* Pairs with the release in publish() and morph_ring_add(). */
		.head = smp_load_acquire(&ring->head->head),
		.tail = READ_ONCE(ring->tail->tail),
		.to = to,
		.room = room,
	};
	int ret = 0;

	if (c.head - c.tail > ring->size || !IS_ALIGNED(c.tail, MORPH_RECORD_ALIGN))
		ret = -EIO;
	while (!ret && c.tail != c.head)
		ret = copy_record(ring, &c);
	if (ret == -EIO) {
		/* The tail is invalid. Set it to the head, from which reading works again. */
		c.tail = c.head;
		WRITE_ONCE(ring->given, 0);
	}
	/*
	 * Pairs with the acquire in morph_ring_used(): the records before the tail have
	 * been read.
	 */
	smp_store_release(&ring->tail->tail, c.tail);
	if (c.done || ret == -ENODATA)
		return c.done;
	return ret;
}
