/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring - one CPU's records on their way to the reader; see uapi/morph_dev.h for what he sees.
 *
 * One writer, its own CPU with interrupts off, so there is no lock. The reader's page is the only
 * memory that is not ours alone: its tail is read once per decision, and any value will do.
 */
#ifndef MORPH_RING_H
#define MORPH_RING_H

#include <linux/irq_work.h>
#include <linux/types.h>

#include "kmod/uapi/morph_dev.h"

struct morph_ring {
	/* For each sample, one cache line together with what struct morph_cpu puts in front. */
	u64 *next; /* where the next sample of the open batch goes */
	u64 *end;  /* no further: then morph_ring_open() again. Equal: no batch is open */
	struct morph_samples *open;
	struct morph_head *head; /* the reader cannot write to it: our only copy */
	/* From here on for each batch or event. */
	struct morph_tail *tail;
	u8 *records;
	u64 size;	/* of @records; 0: there is no ring yet */
	u64 wake_bytes; /* the reader wants to be woken when so much is in it */
	u64 nr_lost_samples, nr_lost_events;		  /* since LOST was last said */
	u64 lost_since_ns;				  /* when the first of these was */
	u64 sum_lost_samples, sum_lost_events, nr_events; /* since the device was opened */
	u64 nr_wakeups;
	u64 given; /* of the open record, bytes that read() gave out */
	struct irq_work wake;
	void *pages; /* all of it, as mapped */
};

/* Context: may sleep. Return: 0 or -ENOMEM. */
int morph_ring_init(struct morph_ring *ring, u32 cpu, u64 size);
/* Context: may sleep; nobody writes any more. */
void morph_ring_fini(struct morph_ring *ring);

/*
 * morph_ring_reserve - room for one record of @size bytes, a multiple of 8. Ends an open batch.
 * Return: NULL where there is none; the caller counts it by morph_ring_lose().
 * Context: on the ring's CPU, interrupts off, until morph_ring_commit().
 */
void *morph_ring_reserve(struct morph_ring *ring, u32 size);
void morph_ring_commit(struct morph_ring *ring, u32 size);
/* Counts what found no room; LOST says it as soon as there is some. */
void morph_ring_lose(struct morph_ring *ring, u64 now_ns, u32 nr_samples, u32 nr_events);

/*
 * morph_ring_open - a new batch, whose header is @header; its size and CPU are filled in.
 * Return: false where there is no room for the header and a sample.
 */
bool morph_ring_open(struct morph_ring *ring, const struct morph_task *header);

/* Ends the open batch: the next sample opens a new one. */
static inline void morph_ring_close(struct morph_ring *ring)
{
	ring->end = ring->next;
}

/* Context: @ring->next != @ring->end. */
static inline void morph_ring_add(struct morph_ring *ring, u64 ip)
{
	struct morph_record *record = &ring->open->task.record;

	*ring->next++ = ip;
	WRITE_ONCE(record->size, record->size + sizeof(ip));
	/* Pairs with the reader's acquire: what lies before head is written. */
	smp_store_release(&ring->head->head, ring->head->head + sizeof(ip));
}

/*
 * morph_ring_read - as many whole records as fit into @room bytes at @to.
 * Return: bytes, 0 where there is none; -ENOSPC no room for one, -EFAULT, -EIO the tail was rubbish.
 * Context: may sleep; one caller at a time.
 */
ssize_t morph_ring_read(struct morph_ring *ring, char __user *to, size_t room);

/* Bytes between tail and head; more than the ring's size where the reader wrote rubbish. */
static inline u64 morph_ring_used(const struct morph_ring *ring)
{
	/* Pairs with the reader's release: it has read what we may now write over. */
	return READ_ONCE(ring->head->head) - smp_load_acquire(&ring->tail->tail);
}

/* There is something that read() did not give out yet. */
static inline bool morph_ring_has_more(const struct morph_ring *ring)
{
	return morph_ring_used(ring) > READ_ONCE(ring->given);
}

/* There is so much in it that the reader should be woken. */
static inline bool morph_ring_is_due(const struct morph_ring *ring)
{
	return morph_ring_used(ring) >= READ_ONCE(ring->wake_bytes);
}

#endif
