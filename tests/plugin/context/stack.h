// SPDX-License-Identifier: Apache-2.0
/*
 * stack - the activations of a thread, from the outermost to the innermost.
 *
 * Decides what a frame is, and which frames a stack pointer leaves. flow.h decides when. Frames
 * are known by the address of their return address (`slot'): slots of one stack descend. A thread
 * may run a signal handler on an alternate stack: then a new segment of frames begins. Frames of a
 * stack that the thread left for another one wait in `stacks'.
 */
#ifndef MORPH_TESTS_STACK_H
#define MORPH_TESTS_STACK_H

#include "tests/plugin/context/functions.h"
#include "tests/plugin/context/tree.h"
#include "tests/plugin/transfer.h"

#define NO_ADDRESS UINT64_MAX

/* A translation block: instructions that run one after the other. */
struct block {
	uint64_t start, end; /* guest addresses; end: behind the last instruction */
	uint64_t last;	     /* the last instruction */
	uint64_t next;	     /* where control goes without a transfer; NO_ADDRESS: nowhere */
	uint64_t target;     /* of a direct transfer; NO_ADDRESS: none */
	uint64_t bias;	     /* guest address - link-time address */
	struct object *object;
	struct function *function;	/* of the first instruction; NULL: not known */
	struct function *last_function; /* of the last instruction */
	uint32_t site;			/* number of the call that ends the block, or 0 */
	uint32_t entry;			/* number of the function that begins here; 0: not asked */
	uint32_t nr_insns;
	uint8_t transfer;
	uint16_t pops; /* bytes that a return removes besides its address */
	bool in_plt;   /* of a procedure linkage table */
	bool at_start; /* of `function' */
	bool starts_repeat, repeats;
	bool loads_sp;	 /* sets the stack pointer from elsewhere */
	uint8_t sizes[]; /* of the instructions */
};

enum frame_flag {
	FRAME_SIGNAL = 1,  /* a signal handler */
	FRAME_SEGMENT = 2, /* the first one on another stack */
	FRAME_PENDING =
		4,	 /* called into a procedure linkage table: the function is not known yet */
	FRAME_LAZY = 8,	 /* runs a resolver that will jump to the function */
	FRAME_PLT = 16,	 /* was called through a procedure linkage table */
	FRAME_TAIL = 32, /* began by a jump of the function that the site called */
	FRAME_WRITTEN = 64 /* is in samples= */
};

struct frame {
	uint64_t slot;	   /* address of the return address */
	uint64_t ret;	   /* that return address; a signal: the interrupted instruction */
	uint64_t serial;   /* of the activation */
	uint64_t call;	   /* serial of the activation that the call made; tail calls followed */
	uint64_t previous; /* serial before the last tail call */
	uint64_t outer_sp, outer_high; /* of the segment below; only with FRAME_SEGMENT */
	uint32_t node, site, function;
	uint32_t at;   /* the site in samples=: a signal's interrupted instruction */
	uint32_t jump; /* pending: the site of the tail call, or 0 */
	uint32_t flags;
	struct function *range, *previous_range; /* before the last tail call */
	uint32_t previous_function;
};

struct stack {
	struct frame *v;
	size_t nr;
	uint64_t high; /* slot of the first frame of the segment */
	uint64_t sp;   /* where the thread left it */
	const void *thread;
};

/* An emulated thread. */
struct vcpu {
	const struct block *prev;
	struct node *current; /* receives instructions */
	struct stack stack;
	uint64_t sp; /* at the start of the last block that ran on `stack' */
	uint64_t nr_insns, nr_calls, serial;
	uint64_t next_sample, random;
	uint64_t nr_samples;
	uint64_t nr_resolved;	    /* calls whose function a resolver found first */
	uint64_t nr_frames, nr_bad; /* in samples; bad: memory has another return address */
	uint32_t number;
	bool sigreturn, pending;
	bool moved;	/* the stack pointer was loaded, and no transfer has shown yet for what */
	uint8_t inside; /* the callback */
	struct tree tree;
	struct jumps jumps;
	struct node scratch; /* receives instructions while a function is not known */
};

static struct frame *top(const struct vcpu *v)
{
	return &v->stack.v[v->stack.nr - 1];
}

static void current_set(struct vcpu *v)
{
	const struct frame *f = top(v);

	v->pending = f->flags & (FRAME_PENDING | FRAME_LAZY);
	v->current = f->flags & FRAME_PENDING ? &v->scratch : tree_node(&v->tree, f->node);
}

static struct frame *frame_push(struct vcpu *v, uint64_t slot, uint64_t ret, uint32_t site,
				uint32_t flags)
{
	struct frame *f;

	v->stack.v = grow(v->stack.v, v->stack.nr, sizeof(*f));
	f = &v->stack.v[v->stack.nr++];
	*f = (struct frame){.slot = slot,
			    .ret = ret,
			    .site = site,
			    .at = site,
			    .flags = flags,
			    .serial = (uint64_t)v->number << 40 | ++v->serial};
	f->call = f->serial;
	if (flags & FRAME_SEGMENT) {
		f->outer_high = v->stack.high;
		f->outer_sp = v->sp;
		v->stack.high = slot;
	}
	return f;
}

/* The top frame's function is @function: counts an activation. */
static void frame_enter(struct vcpu *v, uint32_t function, struct function *range)
{
	struct frame *f = top(v);
	struct node *node;

	f->function = function;
	f->range = range;
	f->node = tree_get(&v->tree, v->stack.nr > 1 ? f[-1].node : 0, f->site, function);
	node = tree_node(&v->tree, f->node);
	node->activations++;
	node->tails += (f->flags & FRAME_TAIL) != 0;
	node->plt += (f->flags & FRAME_PLT) != 0;
	node->self += v->scratch.self;
	v->scratch.self = 0;
	current_set(v);
}

/* Removes the innermost frame, but never the first one. */
static void frame_pop(struct vcpu *v)
{
	const struct frame *f = top(v);

	if (v->stack.nr == 1)
		return;
	if (f->flags & FRAME_PENDING)
		v->scratch.self = 0;
	if (f->flags & FRAME_SEGMENT)
		v->stack.high = f->outer_high;
	v->stack.nr--;
}

/* Removes the frames of the segment whose return addresses lie below @sp. */
static void frames_leave(struct vcpu *v, uint64_t sp)
{
	while (v->stack.nr > 1 && top(v)->slot < sp) {
		bool was_segment = top(v)->flags & FRAME_SEGMENT;

		frame_pop(v);
		if (was_segment)
			break;
	}
	current_set(v);
}

/* ---- stacks that are left ---- */

#define NR_STACKS 4096

static struct {
	struct stack v[NR_STACKS];
	size_t nr;
	uint64_t nr_made, nr_dropped;
} stacks; /* of all threads; protected by g.lock */

/* Keeps the thread's stack for later. */
static void stack_suspend(struct vcpu *v)
{
	v->stack.sp = v->sp;
	v->stack.thread = v;
	if (stacks.nr == NR_STACKS) {
		free(stacks.v[0].v);
		memmove(stacks.v, stacks.v + 1, sizeof(stacks.v) - sizeof(stacks.v[0]));
		stacks.nr--;
		stacks.nr_dropped++;
	}
	stacks.v[stacks.nr++] = v->stack;
	v->stack = (struct stack){0};
}

/* The thread goes on with stack number @i. Another thread's tree has other nodes. */
static void stack_resume(struct vcpu *v, size_t i)
{
	struct stack next = stacks.v[i];
	size_t j;

	stacks.v[i] = stacks.v[--stacks.nr];
	stack_suspend(v);
	v->stack = next;
	for (j = 0; next.thread != v && j < next.nr; j++)
		next.v[j].node = tree_get(&v->tree, j ? next.v[j - 1].node : 0, next.v[j].site,
					  next.v[j].function);
	current_set(v);
}

/* Return: the waiting stack that goes on behind the call that left it, or -1. */
static ssize_t stack_find_return(uint64_t pc, uint64_t sp)
{
	size_t i, j;

	for (i = 0; i < stacks.nr; i++)
		for (j = 0; j < 4 && j < stacks.v[i].nr; j++) {
			const struct frame *f = &stacks.v[i].v[stacks.v[i].nr - 1 - j];

			if (f->ret == pc && f->slot + 8 == sp)
				return (ssize_t)i;
		}
	return -1;
}

/* Return: the waiting stack that holds @sp most closely, or -1. */
static ssize_t stack_find_range(uint64_t sp)
{
	ssize_t best = -1;
	size_t i;

	for (i = 0; i < stacks.nr; i++) {
		const struct stack *s = &stacks.v[i];

		if (sp >= s->sp && sp <= s->high &&
		    (best < 0 || sp - s->sp < sp - stacks.v[best].sp))
			best = (ssize_t)i;
	}
	return best;
}

/* Forgets waiting stacks that began at @slot: their memory serves another one now. */
static void stacks_forget(uint64_t slot)
{
	size_t i = 0;

	while (i < stacks.nr) {
		if (stacks.v[i].high != slot) {
			i++;
			continue;
		}
		free(stacks.v[i].v);
		stacks.v[i] = stacks.v[--stacks.nr];
	}
}

#endif
