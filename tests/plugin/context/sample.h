// SPDX-License-Identifier: Apache-2.0
/*
 * sample - writes the exact stack of a thread at drawn instructions (samples=).
 *
 * Documentation/lab/contexts.md has the format. An activation is written once, when the first sample
 * sees it, and names its caller's. Included by contexts.c.
 */
#ifndef MORPH_TESTS_SAMPLE_H
#define MORPH_TESTS_SAMPLE_H

#include <sys/uio.h>

/* Order of QEMU's registers by their numbers in DWARF. */
static const uint8_t dwarf_regs[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Draws the distance to the next sample: from 1 to twice the period less 1. */
static void sample_draw(struct vcpu *v)
{
	v->next_sample += 1 + draw(&v->random) % (2 * g.period - 1);
}

static void activations_write(struct vcpu *v)
{
	size_t i = v->stack.nr;

	while (i && !(v->stack.v[i - 1].flags & FRAME_WRITTEN))
		i--;
	for (; i < v->stack.nr; i++) {
		struct frame *f = &v->stack.v[i];

		f->flags |= FRAME_WRITTEN;
		fprintf(g.samples, "a %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %#" PRIx64 "%s%s\n",
			f->serial, f->call, i ? f[-1].serial : 0, f->at, f->function,
			f->slot == NO_ADDRESS ? 0 : f->slot, f->flags & FRAME_TAIL ? " tail" : "",
			f->flags & FRAME_PLT ? " plt" : "");
	}
}

/* A frame on a stack must still have its return address there. */
static void frames_check(struct vcpu *v)
{
	size_t i;

	for (i = 0; i < v->stack.nr; i++) {
		const struct frame *f = &v->stack.v[i];

		if (f->slot == NO_ADDRESS || (f->flags & FRAME_SIGNAL))
			continue;
		v->nr_frames++;
		v->nr_bad += guest_word(f->slot) != f->ret;
	}
}

#define RED_ZONE 128 /* bytes below the stack pointer that belong to the function */

/*
 * Writes up to @g.stack_size bytes from the red zone's start, but none above the first frame. The
 * memory above a thread's stack may not be mapped, so the kernel reads.
 */
static void memory_write(const struct vcpu *v, uint64_t sp)
{
	static uint8_t memory[65536];
	uint64_t size = g.stack_size, done;

	sp -= RED_ZONE;
	if (v->stack.high + 16 > sp && size > v->stack.high + 16 - sp)
		size = v->stack.high + 16 - sp;
	fputs(" ", g.samples);
	for (done = 0; done < size;) {
		uint64_t part = size - done < sizeof(memory) ? size - done : sizeof(memory);
		struct iovec to = {memory, part}, from = {(void *)(sp + done + g.guest_base), part};
		ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0), i;

		for (i = 0; i < got; i++)
			fprintf(g.samples, "%02x", memory[i]);
		if (got < (ssize_t)part)
			break;
		done += part;
	}
}

/*
 * Writes the samples that fall into @b, which the thread is about to execute. The emulator's
 * registers @regs are those of its first instruction only.
 */
static __attribute__((noinline)) void samples_write(struct vcpu *v, const struct block *b,
						    const uint64_t *regs)
{
	uint64_t before = v->nr_insns - b->nr_insns, at = b->start;
	uint32_t nr = 0;
	int i;

	pthread_mutex_lock(&g.lock);
	for (; v->next_sample < v->nr_insns; sample_draw(v)) {
		while (nr < b->nr_insns && before + nr < v->next_sample)
			at += b->sizes[nr++];
		activations_write(v);
		frames_check(v);
		fprintf(g.samples, "s %u %" PRIu64 " %zu %#" PRIx64 " %" PRIu64, v->number,
			v->next_sample, b->object->index, at - b->bias, top(v)->serial);
		if (nr == 0) {
			for (i = 0; i < 16; i++)
				fprintf(g.samples, " %" PRIx64, regs[dwarf_regs[i]]);
			if (g.stack_size)
				memory_write(v, regs[4]);
		}
		fputs("\n", g.samples);
		v->nr_samples++;
	}
	pthread_mutex_unlock(&g.lock);
}

#endif
