// SPDX-License-Identifier: Apache-2.0
/*
 * flow - what happened between two blocks of a thread: a call, a return, a tail call, a signal, a
 * jump over frames, or a change of stacks.
 *
 * Decides by the last block's transfer, the new block's address, the stack pointer and the memory
 * that it points to. Included by contexts.c, which has the process's tables (`g').
 */
#ifndef MORPH_TESTS_FLOW_H
#define MORPH_TESTS_FLOW_H

#define NEAR	     65536 /* bytes by which one block may extend a stack */
#define CONTEXT_REGS 40	   /* general registers in a struct ucontext */
#define CONTEXT_RSP  15
#define CONTEXT_RIP  16

static uint64_t guest_word(uint64_t addr)
{
	return *(const uint64_t *)(addr + g.guest_base);
}

/* Return: number of the function that begins with @b. */
static uint32_t block_entry(struct block *b)
{
	if (!b->entry) {
		pthread_mutex_lock(&g.lock);
		b->entry = place_get(&g.functions, b->object, b->start - b->bias, 0, 0);
		pthread_mutex_unlock(&g.lock);
	}
	return b->entry;
}

static bool block_enters(const struct block *b)
{
	return b->at_start && b->function->enters;
}

static uint32_t site_get(const struct block *b, enum site_kind kind)
{
	uint32_t site;

	pthread_mutex_lock(&g.lock);
	site = place_get(&g.sites, b->object, b->last - b->bias, (uint8_t)kind,
			 (uint8_t)(b->end - b->last));
	pthread_mutex_unlock(&g.lock);
	return site;
}

/* ---- calls and tail calls ---- */

static void call_enter(struct vcpu *v, struct block *b, uint64_t sp)
{
	uint32_t flags = 0;

	/* frames at or below the new return address are dead: it may have overwritten theirs */
	if (sp >= top(v)->slot) {
		if (sp > v->stack.high)
			flags = FRAME_SEGMENT;
		else
			frames_leave(v, sp + 1);
	}
	v->nr_calls++;
	frame_push(v, sp, v->prev->end, v->prev->site, flags);
	if (b->in_plt) {
		top(v)->flags |= FRAME_PENDING;
		top(v)->function = block_entry(b);
		current_set(v);
	} else {
		frame_enter(v, block_entry(b), b->function);
	}
}

/* The activation on top ends by a jump to the start of @b: another one takes its frame. */
static void tail_enter(struct vcpu *v, struct block *b)
{
	struct frame *f = top(v);

	f->previous = f->serial;
	f->previous_range = f->range;
	f->previous_function = f->function;
	f->serial = (uint64_t)v->number << 40 | ++v->serial;
	f->flags &= ~(uint32_t)(FRAME_WRITTEN | FRAME_PLT | FRAME_LAZY);
	f->jump = 0;
	if (v->stack.nr > 1) {
		f->flags |= FRAME_TAIL;
		f->jump = site_get(v->prev, SITE_JUMP);
	}
	if (b->in_plt) {
		f->flags |= FRAME_PENDING;
		f->function = block_entry(b);
		current_set(v);
		return;
	}
	if (f->jump)
		jump_add(&v->jumps, f->jump, block_entry(b), 0, 1);
	frame_enter(v, block_entry(b), b->function);
}

/*
 * The innermost call went through a procedure linkage table, and an indirect jump leads to @b.
 * Return: whether it left the table, or the resolver that ran behind it.
 */
static bool pending_enter(struct vcpu *v, struct block *b, uint64_t sp)
{
	struct frame *f = top(v);
	bool tail = f->flags & FRAME_TAIL;

	if (b->in_plt)
		return true;
	if (f->flags & FRAME_LAZY) {
		/* the resolver is done when it jumps with the stack of the call */
		if (sp != f->slot || (b->function && b->function == v->prev->last_function))
			return false;
		f->serial = (uint64_t)v->number << 40 | ++v->serial;
		v->nr_resolved += !tail;
	}
	f->flags &= ~(uint32_t)(FRAME_WRITTEN | FRAME_PENDING | FRAME_LAZY);
	f->flags |= FRAME_PLT;
	if (sp != f->slot)
		f->flags |= FRAME_LAZY;
	if (tail && f->jump)
		jump_add(&v->jumps, f->jump, block_entry(b), 1, 1);
	frame_enter(v, block_entry(b), b->function);
	return true;
}

/*
 * @b continues a function from which a tail call seemed to lead to the one on top: that one is a
 * part of the function, and was no activation.
 */
static void part_leave(struct vcpu *v, struct block *b)
{
	struct frame *f = top(v);

	pthread_mutex_lock(&g.lock);
	g.functions.v[f->function].owner = f->previous_function;
	pthread_mutex_unlock(&g.lock);
	if (f->range)
		f->range->enters = false;
	f->serial = f->previous;
	f->function = f->previous_function;
	f->range = b->function;
	f->previous_range = NULL;
	f->flags &= ~(uint32_t)FRAME_WRITTEN;
	f->node = tree_get(&v->tree, v->stack.nr > 1 ? f[-1].node : 0, f->site, f->function);
	current_set(v);
}

/* A jump with the stack pointer of an entry: a tail call, if it leads to another function. */
static void jump_enter(struct vcpu *v, struct block *b)
{
	const struct frame *f = top(v);

	if (v->prev->in_plt || b->function == v->prev->last_function)
		return;
	if (b->in_plt || block_enters(b))
		tail_enter(v, b);
	else if (b->function && f->previous_range == b->function && (f->flags & FRAME_TAIL))
		part_leave(v, b);
}

/* ---- signals ---- */

/* The block @b was left at @pc, before its end: takes back what it did not execute. */
static void cut_settle(struct vcpu *v, const struct block *b, uint64_t pc)
{
	uint64_t at = b->start, nr = 0;

	while (at < pc && nr < b->nr_insns)
		at += b->sizes[nr++];
	v->current->self -= b->nr_insns - nr;
	v->nr_insns -= b->nr_insns - nr;
}

static bool is_cut(const struct block *prev, uint64_t pc)
{
	if (pc == prev->last && pc != prev->target && prev->nr_insns > 1)
		return true;
	return pc != prev->target && pc != prev->next && pc >= prev->start && pc < prev->end &&
	       (prev->target != NO_ADDRESS || prev->next != NO_ADDRESS);
}

static const struct handler *handler_find(uint64_t pc)
{
	size_t i, nr = __atomic_load_n(&g.nr_handlers, __ATOMIC_ACQUIRE);

	for (i = 0; i < nr; i++)
		if (g.handlers[i].entry == pc)
			return &g.handlers[i];
	return NULL;
}

static void flow_settle(struct vcpu *v, struct block *b, uint64_t sp);

/*
 * @b begins a signal handler: the kernel's frame names the interrupted instruction. First settles
 * how control came to that instruction. Return: false: it is no handler.
 */
static bool signal_enter(struct vcpu *v, struct block *b, uint64_t sp)
{
	const struct handler *handler = handler_find(b->start);
	uint64_t regs = sp + 8 + CONTEXT_REGS, pc, old_sp;
	struct block *resumed;
	uint32_t flags = FRAME_SIGNAL;
	struct frame *f;

	if (!handler || guest_word(sp) != handler->restorer)
		return false;
	pc = guest_word(regs + 8 * CONTEXT_RIP);
	old_sp = guest_word(regs + 8 * CONTEXT_RSP);
	resumed = block_at(pc);
	if (pc != v->prev->next)
		flow_settle(v, resumed, old_sp);
	v->sp = old_sp;
	if (top(v)->flags & FRAME_PENDING) {
		top(v)->flags &= ~(uint32_t)FRAME_PENDING;
		top(v)->flags |= FRAME_LAZY;
		frame_enter(v, top(v)->function, NULL);
	}
	if (sp > old_sp || old_sp - sp > NEAR)
		flags |= FRAME_SEGMENT;
	f = frame_push(v, sp, pc, SITE_SIGNAL, flags);
	pthread_mutex_lock(&g.lock);
	f->at = place_get(&g.sites, resumed->object, pc - resumed->bias, SITE_INTERRUPTED, 0);
	pthread_mutex_unlock(&g.lock);
	frame_enter(v, block_entry(b), b->function);
	g.nr_signals++;
	return true;
}

/* After a sigreturn: the handler's frame ends. */
static void signal_leave(struct vcpu *v)
{
	size_t i = v->stack.nr - 1;

	while (i && !(v->stack.v[i].flags & FRAME_SIGNAL))
		i--;
	if (!i)
		return;
	v->prev = block_at(v->stack.v[i].ret);
	while (v->stack.nr > i)
		frame_pop(v);
	current_set(v);
}

/* ---- jumps over frames, other stacks ---- */

/* The program made a stack: @b is its first block. A call in front of it made its first frame. */
static void stack_begin(struct vcpu *v, struct block *b, uint64_t sp)
{
	struct block *caller = NULL;

	pthread_mutex_lock(&g.lock);
	if (v->stack.nr)
		stack_suspend(v);
	stacks_forget(sp);
	stacks.nr_made++;
	pthread_mutex_unlock(&g.lock);
	v->stack.high = sp;
	if (sp & 4095) /* a word at a page's start may not be mapped */
		caller = block_at(guest_word(sp));
	if (caller && caller->object->phdrs) {
		frame_push(v, NO_ADDRESS, 0, SITE_START, 0);
		frame_enter(v, block_entry(caller), caller->function);
		frame_push(v, sp, caller->start, site_get(caller, SITE_STACK), 0);
	} else {
		frame_push(v, NO_ADDRESS, 0, SITE_START, 0);
	}
	frame_enter(v, block_entry(b), b->function);
}

/* Return: whether the thread went on with a stack that was left earlier. */
static bool stack_switch(struct vcpu *v, uint64_t pc, uint64_t sp, bool only_return)
{
	ssize_t i;

	pthread_mutex_lock(&g.lock);
	i = stack_find_return(pc, sp);
	if (i < 0 && !only_return)
		i = stack_find_range(sp);
	if (i >= 0) {
		stack_resume(v, (size_t)i);
		v->sp = sp;
	}
	pthread_mutex_unlock(&g.lock);
	if (i >= 0)
		frames_leave(v, sp);
	return i >= 0;
}

/* Return: whether @sp lies in an outer segment, to which control then came back. */
static bool segment_leave(struct vcpu *v, uint64_t sp)
{
	uint64_t low, high;
	size_t i;

	for (i = v->stack.nr; i-- > 1;) {
		const struct frame *f = &v->stack.v[i];

		if (!(f->flags & FRAME_SEGMENT))
			continue;
		low = f->outer_sp;
		high = f->outer_high;
		if (sp < low || sp > high)
			continue;
		while (v->stack.nr > i)
			frame_pop(v);
		frames_leave(v, sp);
		return true;
	}
	return false;
}

/*
 * Return: whether @sp, where @b begins, is no part of the segment on which the thread ran. A return
 * goes up on its stack; a jump in a function stays.
 */
static bool is_elsewhere(const struct vcpu *v, const struct block *b, uint64_t sp)
{
	if (sp > v->stack.high)
		return true;
	if (sp >= top(v)->slot || v->prev->in_plt ||
	    (v->prev->transfer == TRANSFER_IJUMP && b->function &&
	     b->function == v->prev->last_function))
		return false;
	return sp + NEAR < v->sp || v->moved || v->prev->loads_sp;
}

/* An indirect jump, or a return that does not go back to the innermost frame's caller. */
static void indirect_settle(struct vcpu *v, struct block *b, uint64_t sp)
{
	if (stacks.nr && stack_switch(v, b->start, sp, true))
		return;
	if (is_elsewhere(v, b, sp)) {
		/* a waiting stack does not go on at a function's start */
		if (block_enters(b) ||
		    (!segment_leave(v, sp) && !stack_switch(v, b->start, sp, false)))
			stack_begin(v, b, sp);
		return;
	}
	if (sp < top(v)->slot)
		return; /* within the function */
	if (sp > top(v)->slot + 8 + v->prev->pops && block_enters(b)) {
		size_t i = v->stack.nr;

		while (--i && v->stack.v[i].slot < sp)
			;
		if (v->stack.v[i].slot != sp) {
			stack_begin(v, b, sp); /* a stack in a variable of a caller */
			return;
		}
	}
	frames_leave(v, sp);
	if (sp == top(v)->slot)
		jump_enter(v, b);
}

/* Control did not fall through, and no call or return explains where it went. */
static __attribute__((noinline)) void flow_settle(struct vcpu *v, struct block *b, uint64_t sp)
{
	const struct block *prev;

	if (v->sigreturn) {
		v->sigreturn = false;
		signal_leave(v);
		if (b->start == v->prev->next)
			return;
	}
	if (signal_enter(v, b, sp))
		return;
	prev = v->prev;
	if (is_cut(prev, b->start)) {
		cut_settle(v, prev, b->start);
		return;
	}
	switch (prev->transfer) {
	case TRANSFER_CALL:
	case TRANSFER_ICALL:
		if (guest_word(sp) == prev->end)
			call_enter(v, b, sp);
		else
			g.nr_odd++;
		return;
	case TRANSFER_COND:
	case TRANSFER_JUMP:
		if (sp == top(v)->slot)
			jump_enter(v, b);
		return;
	case TRANSFER_IJUMP:
		/* a program's start: the dynamic linker jumps to it with the first stack */
		if (v->number == 1 && v->stack.nr == 1 && sp <= v->stack.high &&
		    v->stack.high - sp < NEAR && b->object != prev->object) {
			tail_enter(v, b);
			return;
		}
		indirect_settle(v, b, sp);
		return;
	case TRANSFER_RET:
		if (v->stack.nr > 1 && sp == top(v)->slot + 8 + prev->pops &&
		    b->start == top(v)->ret && !(top(v)->flags & FRAME_SIGNAL)) {
			frame_pop(v);
			current_set(v);
			return;
		}
		if ((top(v)->flags & FRAME_SIGNAL) && sp == top(v)->slot + 8)
			return; /* to the code that ends the handler */
		indirect_settle(v, b, sp);
		return;
	default: g.nr_odd++;
	}
}

#endif
