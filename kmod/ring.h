/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring - one CPU's records on their way to the reader; uapi/morph_dev.h describes the
 * reader's view.
 * The only writer is the ring's CPU with interrupts off, so there is no lock. The reader
 * can write only to the page of the tail. The tail is read once per decision, and any value
 * is safe.
 */
#ifndef MORPH_RING_H
#define MORPH_RING_H

#include <linux/irq_work.h>
#include <linux/types.h>

#include "kmod/uapi/morph_dev.h"

struct morph_ring {
	/*
	 * Used for each sample: one cache line, together with the first fields of struct
	 * morph_cpu.
	 */
	u64 *next; /* place of the next sample of the open batch */
	/* end of the batch: then morph_ring_open() again. Equal to @next: no batch is open */
	u64 *end;
	struct morph_samples *open;
	struct morph_head *head; /* the reader cannot write to it: it is the only copy */
	/* Used for each batch or event. */
	struct morph_tail *tail;
	u8 *records;
	u64 size;	/* bytes of @records; 0: there is no ring yet */
	u64 wake_bytes; /* number of bytes from which the reader wants to be woken */
	u64 nr_lost_samples, nr_lost_events;		  /* since the last LOST record */
	u64 lost_since_ns;				  /* time of the first of these losses */
	u64 sum_lost_samples, sum_lost_events, nr_events; /* since the device was opened */
	u64 nr_wakeups;
	u64 given; /* bytes of the open record that read() has copied */
	struct irq_work wake;
	void *pages; /* the whole ring as it is mapped */
};

/* Context: may sleep. Return: 0 or -ENOMEM. */
int morph_ring_init(struct morph_ring *ring, u32 cpu, u64 size);
/* Context: may sleep; no CPU writes to it any more. */
void morph_ring_fini(struct morph_ring *ring);

/*
 * morph_ring_reserve - room for one record of @size bytes, a multiple of 8. Ends an open
 * batch.
 * Return: NULL if there is no room; the caller counts that with morph_ring_lose().
 * Context: on the ring's CPU, interrupts off, until morph_ring_commit().
 */
void *morph_ring_reserve(struct morph_ring *ring, u32 size);
void morph_ring_commit(struct morph_ring *ring, u32 size);
/* Counts lost samples and events; a LOST record reports them as soon as there is room. */
void morph_ring_lose(struct morph_ring *ring, u64 now_ns, u32 nr_samples, u32 nr_events);

/*
 * morph_ring_open - starts a new batch with @header; sets its size, type and CPU.
 * Return: false if there is no room for the header and one sample.
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
	/* Pairs with the reader's acquire: everything before head is written. */
	smp_store_release(&ring->head->head, ring->head->head + sizeof(ip));
}

/*
 * morph_ring_read - copies as many whole records as fit into @room bytes at @to.
 * Return: bytes; 0 if there are none; -ENOSPC (not one record fits), -EFAULT, -EIO (the
 * tail was invalid).
 * Context: may sleep; one caller at a time.
 */
ssize_t morph_ring_read(struct morph_ring *ring, char __user *to, size_t room);

/* Bytes between tail and head; more than the ring's size if the reader wrote an invalid tail. */
static inline u64 morph_ring_used(const struct morph_ring *ring)
{
	/* Pairs with the reader's release: it has read the bytes that we may now overwrite. */
	return READ_ONCE(ring->head->head) - smp_load_acquire(&ring->tail->tail);
}

/* True if there are bytes that read() has not copied yet. */
static inline bool morph_ring_has_more(const struct morph_ring *ring)
{
	return morph_ring_used(ring) > READ_ONCE(ring->given);
}

/* True if the ring holds enough to wake the reader. */
static inline bool morph_ring_is_due(const struct morph_ring *ring)
{
	return morph_ring_used(ring) >= READ_ONCE(ring->wake_bytes);
}

#endif
