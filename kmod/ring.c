// SPDX-License-Identifier: GPL-2.0
/* ring - one CPU's records; see ring.h. */
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "kmod/morphmon.h"
#include "kmod/ring.h"

/* Largest batch; a longer one would hold back the tail. */
#define BATCH_BYTES 4096

static void wake_reader(struct irq_work *work)
{
	wake_up_interruptible(&morph_readers);
}

int morph_ring_init(struct morph_ring *ring, u32 cpu, u64 size)
{
	memset(ring, 0, sizeof(*ring));
	ring->pages = vmalloc_user(2 * PAGE_SIZE + size);
	if (!ring->pages)
		return -ENOMEM;
	ring->tail = ring->pages;
	ring->head = ring->pages + PAGE_SIZE;
	ring->records = ring->pages + 2 * PAGE_SIZE;
	ring->head->ring_bytes = size;
	ring->head->cpu = cpu;
	init_irq_work(&ring->wake, wake_reader);
	/* Pairs with the acquire in ring_size(): the other fields are set. */
	smp_store_release(&ring->size, size);
	return 0;
}

void morph_ring_fini(struct morph_ring *ring)
{
	if (!ring->pages)
		return;
	irq_work_sync(&ring->wake);
	vfree(ring->pages);
	memset(ring, 0, sizeof(*ring));
}

static u64 place(const struct morph_ring *ring)
{
	return ring->head->head & (ring->size - 1);
}

static void publish(struct morph_ring *ring, u32 size)
{
	/* Pairs with the reader's acquire. */
	smp_store_release(&ring->head->head, ring->head->head + size);
}

/* @used: result of morph_ring_used(). */
static u64 room(const struct morph_ring *ring, u64 used)
{
	return used <= ring->size ? ring->size - used : 0;
}

/*
 * Makes room for @size bytes in one piece, with a PAD record in front if needed. Return:
 * false if they do not fit.
 */
static bool make_contiguous(struct morph_ring *ring, u32 size, u64 *room_bytes)
{
	u64 at = place(ring), left = ring->size - at;
	struct morph_record *pad = (void *)(ring->records + at);

	if (size <= left)
		return size <= *room_bytes;
	if (left + size > *room_bytes)
		return false;
	/* @left is smaller than a record, so it fits into the PAD's size field. */
	*pad = (struct morph_record){.size = left, .type = MORPH_REC_PAD, .cpu = ring->head->cpu};
	publish(ring, left);
	*room_bytes -= left;
	return true;
}

static bool write_lost_record(struct morph_ring *ring, u64 *room_bytes)
{
	struct morph_lost *lost;

	if (!make_contiguous(ring, sizeof(*lost), room_bytes))
		return false;
	lost = (void *)(ring->records + place(ring));
	*lost = (struct morph_lost){
		.record = {sizeof(*lost), MORPH_REC_LOST, ring->head->cpu},
		.time_ns = ring->lost_since_ns,
		.nr = ring->nr_lost_samples,
		.why = MORPH_LOST_RING_FULL,
		.flags = ring->nr_lost_events ? MORPH_LOST_STATE : 0,
	};
	publish(ring, sizeof(*lost));
	*room_bytes -= sizeof(*lost);
	ring->nr_lost_samples = 0;
	ring->nr_lost_events = 0;
	return true;
}

static void wake_if_due(struct morph_ring *ring, u64 used)
{
	/* A reader that falls asleep right now is missed here; the next record wakes it. */
	if (used < ring->wake_bytes || !waitqueue_active(&morph_readers))
		return;
	/* The scheduler's locks may be held here: wake the reader later, from an interrupt. */
	if (irq_work_queue(&ring->wake))
		ring->nr_wakeups++;
}

void *morph_ring_reserve(struct morph_ring *ring, u32 size)
{
	u64 used, room_bytes;

	morph_ring_close(ring);
	if (!ring->size)
		return NULL;
	used = morph_ring_used(ring);
	wake_if_due(ring, used);
	room_bytes = room(ring, used);
	if ((ring->nr_lost_samples || ring->nr_lost_events) &&
	    !write_lost_record(ring, &room_bytes))
		return NULL;
	if (!make_contiguous(ring, size, &room_bytes))
		return NULL;
	return ring->records + place(ring);
}

void morph_ring_commit(struct morph_ring *ring, u32 size)
{
	ring->nr_events++;
	publish(ring, size);
}

void morph_ring_lose(struct morph_ring *ring, u64 now_ns, u32 nr_samples, u32 nr_events)
{
	if (!ring->nr_lost_samples && !ring->nr_lost_events)
		ring->lost_since_ns = now_ns;
	ring->nr_lost_samples += nr_samples;
	ring->nr_lost_events += nr_events;
	ring->sum_lost_samples += nr_samples;
	ring->sum_lost_events += nr_events;
	if (nr_events) {
		/* A process that becomes known afterwards does so after the loss was counted. */
		smp_wmb();
		morph_spaces_invalidate();
	}
}

bool morph_ring_open(struct morph_ring *ring, const struct morph_task *header)
{
	const u64 least = sizeof(*ring->open) + sizeof(u64);
	u64 bytes;

	ring->open = morph_ring_reserve(ring, least);
	if (!ring->open)
		return false;
	bytes = min3(room(ring, morph_ring_used(ring)), ring->size - place(ring), (u64)BATCH_BYTES);
	/* The ring had room before; only a reader that wrote an invalid tail can cause this. */
	bytes = max(bytes, least);
	ring->open->task = *header;
	ring->open->task.record.size = sizeof(*ring->open);
	ring->open->task.record.type = MORPH_REC_SAMPLES;
	ring->open->task.record.cpu = ring->head->cpu;
	publish(ring, sizeof(*ring->open));
	ring->next = ring->open->ips;
	/*
	 * The tail only moves forward. If it is invalid, only the reader's own records are
	 * damaged.
	 */
	ring->end = ring->next + (bytes - sizeof(*ring->open)) / sizeof(u64);
	return true;
}
