// SPDX-License-Identifier: GPL-2.0
/*
 * walk - one frame after the other; see walk.h. libprof/unwind/walk.c is the reference.
 *
 * A return address may be the first byte behind its function, if the call never returns. So
 * the row is that of the byte before, but not for the innermost frame and not for a frame
 * that a signal interrupted: these were about to run the instruction at the address itself.
 */
#include "kmod/walk.h"
#ifdef __KERNEL__
#include "kmod/walk_user.h"
#endif

#define WORD 8
/* Bytes between rsp and rbp in code without rows. All their words are looked at. */
#define BARE_FRAME_MAX 1024

/* Places of x86's registers in struct pt_regs; stack.c compares them with the kernel's. */
static const u8 places[MORPH_NR_REGS] = {10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0};
#define PLACE_IP 16

static bool is_user(u64 address)
{
	return address < MORPH_USER_END - WORD;
}

static bool read_word(u64 address, u64 *word)
{
	u64 got;

	if (!is_user(address))
		return false;
	address = morph_user_address(address);
	morph_user_begin();
	morph_user_get(got, address, fault);
	morph_user_end();
	*word = got;
	return true;
fault:
	morph_user_end();
	return false;
}

/* The value of rbp in the frame to be left. rbp is read only where a rule needs it. */
static bool get_rbp(const struct morph_walk *w, u64 *rbp)
{
	*rbp = w->rbp;
	return w->rbp_kind == MORPH_RBP_VALUE ||
	       (w->rbp_kind == MORPH_RBP_AT && read_word(w->rbp, rbp));
}

/* ---- one frame by its row ---- */

/* Computes the CFA. Return: 0, or why that is not possible. */
static enum morph_stack_stop find_cfa(const struct morph_walk *w, const struct morph_row_rule *rule,
				      struct morph_frame *f, u64 *cfa)
{
	if (rule->cfa_reg == MORPH_REG_RSP) {
		*cfa = w->rsp;
	} else if (rule->cfa_reg == MORPH_REG_RBP) {
		if (!get_rbp(w, &f->base))
			return MORPH_STACK_REGISTER;
		f->flags |= MORPH_FRAME_BASE;
		*cfa = f->base;
	} else if (w->is_first) {
		*cfa = w->regs[places[rule->cfa_reg]];
		f->flags |= MORPH_FRAME_HARD;
	} else {
		return MORPH_STACK_REGISTER;
	}
	*cfa += (s64)rule->cfa_off;
	if (rule->cfa == MORPH_ROW_PLT && (int)(w->ip & 15) >= rule->cfa_add)
		*cfa += WORD;
	if (rule->cfa != MORPH_ROW_DEREF)
		return MORPH_STACK_UNSAID;
	f->flags |= MORPH_FRAME_HARD;
	if (!read_word(*cfa, cfa))
		return MORPH_STACK_COPY;
	*cfa += (s64)rule->cfa_add;
	return MORPH_STACK_UNSAID;
}

/* Return: false: the rule needs rbp, which is not known. */
static bool find_saved(const struct morph_walk *w, u8 saved, s32 off, u64 cfa, u64 *address)
{
	u64 base = cfa;

	if (saved == MORPH_ROW_AT_RSP)
		base = w->rsp;
	else if (saved == MORPH_ROW_AT_RBP && !get_rbp(w, &base))
		return false;
	*address = base + (s64)off;
	return true;
}

/* Sets where the caller's rbp is. */
static void save_rbp(struct morph_walk *w, const struct morph_row_rule *rule, struct morph_frame *f,
		     u64 cfa)
{
	u64 address;

	if (rule->rbp == MORPH_ROW_SAME)
		return;
	if (rule->rbp == MORPH_ROW_UNKNOWN ||
	    !find_saved(w, rule->rbp, rule->rbp_off, cfa, &address) || !is_user(address)) {
		w->rbp_kind = MORPH_RBP_UNKNOWN;
		f->flags |= MORPH_FRAME_LOSE;
		return;
	}
	w->rbp_kind = MORPH_RBP_AT;
	w->rbp = address;
	f->rbp_off = address - f->slot;
	f->flags |= MORPH_FRAME_SAVE;
	if (f->slot + (s64)f->rbp_off != address)
		f->flags |= MORPH_FRAME_HARD;
}

static enum morph_stack_stop step_by_rule(struct morph_walk *w, const struct morph_row_rule *rule,
					  struct morph_frame *f)
{
	enum morph_stack_stop stop;
	u64 cfa;

	if (!rule)
		return MORPH_STACK_NO_ROW;
	if (rule->flags & MORPH_ROW_BOTTOM) {
		w->is_row_end = true;
		return MORPH_STACK_BOTTOM;
	}
	if (rule->cfa == MORPH_ROW_STOP)
		return rule->stop == MORPH_ROW_STOP_NO_ROW ? MORPH_STACK_NO_ROW : MORPH_STACK_RULE;
	stop = find_cfa(w, rule, f, &cfa);
	if (stop)
		return stop;
	if (!find_saved(w, rule->ra, rule->ra_off, cfa, &f->slot))
		return MORPH_STACK_REGISTER;
	if (!read_word(f->slot, &f->ip))
		return MORPH_STACK_COPY;
	save_rbp(w, rule, f, cfa);
	/*
	 * The caller's stack pointer is above. It moves back where a signal handler has its
	 * own stack.
	 */
	if (cfa <= w->rsp) {
		if (w->is_back)
			return MORPH_STACK_ORDER;
		w->is_back = true;
		f->flags |= MORPH_FRAME_HARD;
	}
	if (f->slot + WORD != cfa || rule->flags & MORPH_ROW_SIGNAL ||
	    rule->ra == MORPH_ROW_AT_RBP || rule->rbp == MORPH_ROW_AT_RBP)
		f->flags |= MORPH_FRAME_HARD;
	w->rsp = cfa;
	w->is_exact = rule->flags & MORPH_ROW_SIGNAL;
	return MORPH_STACK_UNSAID;
}

/* Return: true if @address may be a return address: code is mapped before it. */
static bool may_be_return(const struct morph_walk *w, u64 address)
{
	return address && morph_code_find(w->codes, address - 1);
}

/* Looks for a return address between rsp and rbp. Return: 0, or why rbp is no frame pointer. */
static enum morph_stack_stop look_below(const struct morph_walk *w, u64 rbp)
{
	u64 at, word;

	if (rbp - w->rsp > BARE_FRAME_MAX)
		return MORPH_STACK_NO_ROWS;
	for (at = w->rsp; at < rbp; at += WORD) {
		if (!read_word(at, &word))
			return MORPH_STACK_COPY;
		if (may_be_return(w, word))
			return MORPH_STACK_NO_ROWS;
	}
	return MORPH_STACK_UNSAID;
}

/*
 * Code without rows. Its frame pointer is plausible if it lies a little above the stack
 * pointer, and code is mapped where the return address leads. Before a function has set rbp,
 * and in one that does not use it as a frame pointer, rbp may be that of a frame further out,
 * and all looks plausible. But then the function's own return address lies between rsp and
 * rbp. So no word there may be a return address. A reader that did not ask for rows gets what
 * frame pointers give: the caller of a function that has no frame is missing.
 */
static enum morph_stack_stop step_by_rbp(struct morph_walk *w, struct morph_frame *f)
{
	enum morph_stack_stop stop = MORPH_STACK_UNSAID;
	u64 rbp, caller;

	if (!get_rbp(w, &rbp) || rbp % WORD || w->rsp % WORD || rbp < w->rsp)
		return MORPH_STACK_NO_ROWS;
	if (w->code->kind == MORPH_CODE_BARE)
		stop = look_below(w, rbp);
	if (stop)
		return stop;
	f->slot = rbp + WORD;
	if (!read_word(rbp, &caller) || !read_word(f->slot, &f->ip))
		return MORPH_STACK_COPY;
	if (f->ip && !may_be_return(w, f->ip))
		return MORPH_STACK_NO_ROWS;
	f->base = rbp;
	f->rbp_off = -WORD;
	/* More words than the remembered ones decide about this frame. */
	f->flags |= MORPH_FRAME_HARD | MORPH_FRAME_SAVE;
	w->rsp = rbp + 2 * WORD;
	w->rbp = rbp;
	w->rbp_kind = MORPH_RBP_AT;
	w->is_exact = false;
	return MORPH_STACK_UNSAID;
}

/* Finds what is mapped at the frame to be left. Return: 0, or that nothing is known to be. */
static enum morph_stack_stop locate(struct morph_walk *w)
{
	u64 at = w->is_exact ? w->ip : w->ip - 1;

	if (!w->code || at - w->code->start >= w->code->size)
		w->code = morph_code_find(w->codes, at);
	return w->code ? MORPH_STACK_UNSAID : MORPH_STACK_UNMAPPED;
}

/* Goes to the caller. Return: why that is not possible; 0: it is in mapped code. */
static enum morph_stack_stop step(struct morph_walk *w, struct morph_frame *f)
{
	u64 at = w->is_exact ? w->ip : w->ip - 1;
	enum morph_stack_stop stop;

	f->flags = 0;
	if (w->code->kind == MORPH_CODE_ROWS)
		stop = step_by_rule(w, morph_rows_find(w->code->rows, at + w->code->bias), f);
	else if (w->code->kind != MORPH_CODE_ASKED)
		stop = step_by_rbp(w, f);
	else
		stop = MORPH_STACK_NO_ROWS;
	if (stop)
		return stop;
	if (w->is_back)
		f->flags |= MORPH_FRAME_BACK;
	w->ip = f->ip;
	w->is_first = false;
	/*
	 * By convention, the outermost frame without unwind information returns to 0. But
	 * there may be a 0 on a stack that the innermost function is about to change to.
	 */
	if (!w->ip)
		return w->nr ? MORPH_STACK_BOTTOM : MORPH_STACK_UNMAPPED;
	return locate(w);
}

/* ---- what is remembered ---- */

/* The remembered frame that has its return address at @slot. Return: its number + 1; 0: none. */
static u32 recall(struct morph_walk *w, u64 slot)
{
	const struct morph_frame *frames = w->last->frames;
	u32 i = w->at;

	if (w->is_back || w->last->is_back) {
		/* On two stacks, the order of addresses says nothing. */
		for (i = w->last->nr; i && frames[i - 1].slot != slot; i--)
			;
		return i;
	}
	while (i && frames[i - 1].slot < slot)
		i--;
	w->at = i;
	return i && frames[i - 1].slot == slot ? i : 0;
}

/* True if the last walk would have met a frame at @slot. */
static bool is_covered(const struct morph_walk *w, u64 slot)
{
	const struct morph_last *last = w->last;

	if (last->stop == MORPH_STACK_BOTTOM)
		return true;
	return !w->is_back && !last->is_back && last->nr && slot < last->frames[0].slot;
}

/*
 * Notes the age of @f, the newest caller. Return: number of the remembered frame from which
 * on the walk is the same if all further words are; 0: none.
 */
static u32 compare(struct morph_walk *w, const struct morph_frame *f)
{
	const struct morph_frame *old;
	u32 found;

	if (!w->last)
		return 0;
	found = recall(w, f->slot);
	if (!found) {
		if (is_covered(w, f->slot))
			w->nr_certain = w->nr;
		return 0;
	}
	w->is_aged = true;
	old = &w->last->frames[found - 1];
	if (old->ip != f->ip) {
		w->nr_certain = w->nr;
		return 0;
	}
	if (!w->is_same_code || (old->flags | f->flags) & MORPH_FRAME_HARD ||
	    (old->flags ^ f->flags) & MORPH_FRAME_BACK)
		return 0;
	return found - 1;
}

/* The remembered frame from @i on, of those below @end, whose function saved or lost rbp. */
static __always_inline const struct morph_frame *saver(const struct morph_walk *w, u32 i, u32 end)
{
	const struct morph_frame *frames = w->last->frames;

	for (; i < end; i++)
		if (frames[i].flags & (MORPH_FRAME_SAVE | MORPH_FRAME_LOSE))
			return &frames[i];
	return NULL;
}

/* More than its return address decides about the frame. */
#define NOT_PLAIN (MORPH_FRAME_HARD | MORPH_FRAME_BASE)

/*
 * Compares the words of the remembered frames below @end with memory, from the innermost to
 * the outermost. Return: number of the last that is the same, or @end.
 */
static u32 reread(struct morph_walk *w, u32 end)
{
	const struct morph_frame *frames = w->last->frames, *f = frames + end, *s;
	const struct morph_frame *stop = f - (end < w->max - w->nr ? end : w->max - w->nr);
	u64 *to = w->ips + w->nr, word, next, at;

	morph_user_begin();
	/* The next frame is f[-1]. Instructions count: most frames are read here, two at a time. */
	for (; f > stop + 1 && !((f[-1].flags | f[-2].flags) & NOT_PLAIN); f -= 2, to += 2) {
		morph_user_get(word, f[-1].slot, one);
		if (word != f[-1].ip)
			break;
		morph_user_get(next, f[-2].slot, one);
		if (next != f[-2].ip)
			break;
		to[0] = word;
		to[1] = next;
	}
one:
	for (; f > stop; f--) {
		if (f[-1].flags & NOT_PLAIN) {
			if (f[-1].flags & MORPH_FRAME_HARD)
				break;
			s = saver(w, f - frames, end);
			if (s ? s->flags & MORPH_FRAME_LOSE : w->rbp_kind == MORPH_RBP_UNKNOWN)
				break;
			at = s ? s->slot + (s64)s->rbp_off : w->rbp;
			word = at;
			if (s || w->rbp_kind == MORPH_RBP_AT)
				morph_user_get(word, at, out);
			if (word != f[-1].base)
				break;
		}
		morph_user_get(word, f[-1].slot, out);
		if (word != f[-1].ip)
			break;
		*to++ = word;
	}
out:
	morph_user_end();
	w->nr_read += to - (w->ips + w->nr);
	w->nr = to - w->ips;
	return f - frames;
}

/* Goes on behind the remembered frame @i, the outermost of those that were read again below @end. */
static void go_on(struct morph_walk *w, u32 i, u32 end)
{
	const struct morph_frame *f = &w->last->frames[i], *s = saver(w, i, end);

	w->ip = f->ip;
	w->rsp = f->slot + WORD;
	w->is_exact = false;
	w->at = i;
	w->copy_from = i;
	w->copy_end = end;
	if (!s)
		return;
	w->rbp = s->slot + (s64)s->rbp_off;
	w->rbp_kind = s->flags & MORPH_FRAME_LOSE ? MORPH_RBP_UNKNOWN : MORPH_RBP_AT;
}

static void copy_pending(struct morph_walk *w)
{
	while (w->copy_end > w->copy_from)
		w->frames[w->nr_frames++] = w->last->frames[--w->copy_end];
	w->copy_from = w->copy_end = 0;
}

static void remember(struct morph_walk *w, enum morph_stack_stop stop)
{
	struct morph_last *last = w->last;
	u32 i;

	if (!last)
		return;
	/* The frames that were read again stay where they are, if they are the outermost. */
	if (w->copy_from)
		copy_pending(w);
	last->nr = w->copy_end;
	for (i = w->nr_frames; i--;)
		last->frames[last->nr++] = w->frames[i];
	last->stop = stop;
	last->is_back = w->is_back;
	last->is_row_end = w->is_row_end;
}

/* ---- the walk ---- */

static enum morph_stack_stop walk(struct morph_walk *w)
{
	enum morph_stack_stop stop;
	struct morph_frame f;
	u32 end, i;

	stop = locate(w);
	while (!stop) {
		stop = step(w, &f);
		if (stop)
			break;
		if (w->nr == w->max)
			return MORPH_STACK_DEPTH;
		w->ips[w->nr++] = f.ip;
		copy_pending(w);
		w->frames[w->nr_frames++] = f;
		end = compare(w, &f);
		if (!end)
			continue;
		i = reread(w, end);
		if (i == end)
			continue;
		go_on(w, i, end);
		/* A row ended the last walk here, so it ends this one. A word might have changed. */
		if (!i && w->last->is_row_end) {
			w->is_row_end = true;
			return MORPH_STACK_BOTTOM;
		}
		stop = locate(w);
	}
	return stop;
}

enum morph_stack_stop morph_walk(struct morph_walk *w)
{
	enum morph_stack_stop stop;

	w->ip = w->regs[PLACE_IP];
	w->rsp = w->regs[places[MORPH_REG_RSP]];
	w->rbp = w->regs[places[MORPH_REG_RBP]];
	w->rbp_kind = MORPH_RBP_VALUE;
	w->is_first = true;
	w->is_exact = true;
	w->is_back = false;
	w->is_row_end = false;
	w->is_aged = false;
	w->code = NULL;
	w->nr = 0;
	w->nr_read = 0;
	w->nr_certain = 0;
	w->nr_frames = 0;
	w->copy_from = 0;
	w->copy_end = 0;
	w->at = w->last ? w->last->nr : 0;
	stop = walk(w);
	w->nr_old = w->nr - w->nr_certain;
	remember(w, stop);
	return stop;
}
