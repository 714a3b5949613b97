// SPDX-License-Identifier: Apache-2.0
/*
 * walk - one frame after the other; see walk.h.
 *
 * A return address may be the first byte behind its function, if the call never returns. So the
 * row is that of the byte before, but not for the innermost frame and not for a frame that a
 * signal interrupted: these were about to run the instruction at the address itself.
 */
#include "libprof/unwind/walk.h"

#define WORD 8
/* Bytes between rsp and rbp in code without rows. All their words are looked at. */
#define BARE_FRAME_MAX 1024

struct walk {
	const struct mp_walk_ops *ops;
	uint64_t ip;
	uint64_t regs[MP_WALK_NR_REGS];
	uint32_t known; /* bit n: register n */
	bool is_exact;	/* @ip is the next instruction, not the one behind a call */
	bool has_moved; /* the stack pointer moved back once */
	enum mp_row_stop row_stop;
	/* what is mapped at @ip */
	enum mp_walk_code code;
	const struct mp_rows *rows;
	uint64_t vaddr;
};

const char *mp_walk_stop_name(enum mp_walk_stop stop)
{
	/* Names in the database: they must not depend on the order of the enum. */
	static const char *const names[MP_NR_WALK_STOP] = {
		[MP_WALK_UNSAID] = "unsaid",	 [MP_WALK_BOTTOM] = "complete",
		[MP_WALK_DEPTH] = "depth",	 [MP_WALK_COPY] = "copy",
		[MP_WALK_UNMAPPED] = "unmapped", [MP_WALK_NO_ROWS] = "no-rows",
		[MP_WALK_NO_ROW] = "no-row",	 [MP_WALK_RULE] = "rule",
		[MP_WALK_REGISTER] = "register", [MP_WALK_ORDER] = "order",
	};

	return (unsigned int)stop < MP_NR_WALK_STOP ? names[stop] : "?";
}

static bool read_word(const struct walk *w, uint64_t address, uint64_t *word)
{
	return w->ops->read(w->ops->arg, address, word);
}

/* Computes the CFA. Return: 0, or why that is not possible. */
static enum mp_walk_stop find_cfa(const struct walk *w, const struct mp_row_rule *rule,
				  uint64_t *cfa)
{
	if (!(w->known >> rule->cfa_reg & 1))
		return MP_WALK_REGISTER;
	*cfa = w->regs[rule->cfa_reg] + (int64_t)rule->cfa_off;
	if (rule->cfa == MP_ROW_PLT && (int)(w->ip & 15) >= rule->cfa_add)
		*cfa += WORD;
	if (rule->cfa != MP_ROW_DEREF)
		return MP_WALK_UNSAID;
	if (!read_word(w, *cfa, cfa))
		return MP_WALK_COPY;
	*cfa += (int64_t)rule->cfa_add;
	return MP_WALK_UNSAID;
}

/* Reads what was saved as @saved and @off say. */
static enum mp_walk_stop read_saved(const struct walk *w, uint8_t saved, int32_t off, uint64_t cfa,
				    uint64_t *word)
{
	uint64_t base = saved == MP_ROW_AT_CFA	 ? cfa
			: saved == MP_ROW_AT_RSP ? w->regs[MP_WALK_RSP]
						 : w->regs[MP_WALK_RBP];

	if (saved == MP_ROW_AT_RBP && !(w->known >> MP_WALK_RBP & 1))
		return MP_WALK_REGISTER;
	return read_word(w, base + (int64_t)off, word) ? MP_WALK_UNSAID : MP_WALK_COPY;
}

/* The caller's stack pointer is above. It moves back where a signal handler has its own stack. */
static bool moves_in_order(struct walk *w, uint64_t rsp)
{
	if (rsp > w->regs[MP_WALK_RSP])
		return true;
	if (w->has_moved)
		return false;
	w->has_moved = true;
	return true;
}

static enum mp_walk_stop step_by_rule(struct walk *w, const struct mp_row_rule *rule)
{
	uint64_t cfa, ip, rbp = w->regs[MP_WALK_RBP];
	enum mp_walk_stop stop;
	bool has_rbp = w->known >> MP_WALK_RBP & 1;

	if (rule->flags & MP_ROW_BOTTOM)
		return MP_WALK_BOTTOM;
	w->row_stop = rule->stop;
	if (rule->cfa == MP_ROW_STOP)
		return rule->stop == MP_ROW_STOP_NO_ROW ? MP_WALK_NO_ROW : MP_WALK_RULE;
	stop = find_cfa(w, rule, &cfa);
	if (!stop)
		stop = read_saved(w, rule->ra, rule->ra_off, cfa, &ip);
	if (stop)
		return stop;
	/* A caller may not need rbp, so a word that is missing does not end the walk here. */
	if (rule->rbp != MP_ROW_SAME)
		has_rbp = rule->rbp != MP_ROW_UNKNOWN &&
			  !read_saved(w, rule->rbp, rule->rbp_off, cfa, &rbp);
	if (!moves_in_order(w, cfa))
		return MP_WALK_ORDER;
	w->regs[MP_WALK_RSP] = cfa;
	w->regs[MP_WALK_RBP] = rbp;
	w->known = 1u << MP_WALK_RSP | (uint32_t)has_rbp << MP_WALK_RBP;
	w->ip = ip;
	w->is_exact = rule->flags & MP_ROW_SIGNAL;
	return MP_WALK_UNSAID;
}

/* Return: true if @address may be a return address: code is mapped before it. */
static bool may_be_return(const struct walk *w, uint64_t address)
{
	const struct mp_rows *rows;
	uint64_t vaddr;

	return address && w->ops->find(w->ops->arg, address - 1, &rows, &vaddr) != MP_WALK_NOTHING;
}

/*
 * Code without rows. Its frame pointer is plausible if it lies a little above the stack pointer,
 * and code is mapped where the return address leads. Before a function has set rbp, and in one
 * that does not use it as a frame pointer, rbp may be that of a frame further out, and all looks
 * plausible. But then the function's own return address lies between rsp and rbp. So no word there
 * may be a return address.
 */
static enum mp_walk_stop step_by_rbp(struct walk *w)
{
	uint64_t rsp = w->regs[MP_WALK_RSP], rbp = w->regs[MP_WALK_RBP], caller, ip, word;

	if (!(w->known >> MP_WALK_RBP & 1) || rbp % WORD || rsp % WORD || rbp < rsp ||
	    rbp - rsp > BARE_FRAME_MAX)
		return MP_WALK_NO_ROWS;
	for (uint64_t at = rsp; at < rbp; at += WORD) {
		if (!read_word(w, at, &word))
			return MP_WALK_COPY;
		if (may_be_return(w, word))
			return MP_WALK_NO_ROWS;
	}
	if (!read_word(w, rbp, &caller) || !read_word(w, rbp + WORD, &ip))
		return MP_WALK_COPY;
	if (ip && !may_be_return(w, ip))
		return MP_WALK_NO_ROWS;
	w->regs[MP_WALK_RSP] = rbp + 2 * WORD;
	w->regs[MP_WALK_RBP] = caller;
	w->known = 1u << MP_WALK_RSP | 1u << MP_WALK_RBP;
	w->ip = ip;
	w->is_exact = false;
	return MP_WALK_UNSAID;
}

/* Finds what is mapped at @ip. Return: false if nothing is known to be there. */
static bool locate(struct walk *w)
{
	uint64_t at = w->is_exact ? w->ip : w->ip - 1;

	w->code = w->ops->find(w->ops->arg, at, &w->rows, &w->vaddr);
	return w->code != MP_WALK_NOTHING;
}

/* Goes to the caller. Return: why that is not possible; 0: @ip is in mapped code. */
static enum mp_walk_stop step(struct walk *w, bool is_innermost)
{
	enum mp_walk_stop stop = w->code == MP_WALK_ROWS
					 ? step_by_rule(w, mp_rows_find(w->rows, w->vaddr))
					 : step_by_rbp(w);

	if (stop)
		return stop;
	/*
	 * By convention, the outermost frame without unwind information returns to 0. But there
	 * may be a 0 on a stack that the innermost function is about to change to.
	 */
	if (!w->ip)
		return is_innermost ? MP_WALK_UNMAPPED : MP_WALK_BOTTOM;
	return locate(w) ? MP_WALK_UNSAID : MP_WALK_UNMAPPED;
}

void mp_walk(const struct mp_walk_ops *ops, const struct mp_walk_start *start, uint64_t *ips,
	     size_t max, struct mp_walk_result *result)
{
	struct walk w = {.ops = ops, .ip = start->ip, .known = 0xffff, .is_exact = true};
	bool by_rbp;

	*result = (struct mp_walk_result){0};
	for (int i = 0; i < MP_WALK_NR_REGS; i++)
		w.regs[i] = start->regs[i];
	result->stop = locate(&w) ? MP_WALK_UNSAID : MP_WALK_UNMAPPED;
	while (!result->stop) {
		by_rbp = w.code == MP_WALK_BARE;
		result->stop = step(&w, !result->nr);
		if (!result->stop && result->nr == max)
			result->stop = MP_WALK_DEPTH;
		if (result->stop)
			break;
		ips[result->nr++] = w.ip;
		result->nr_by_rbp += by_rbp;
	}
	if (result->stop == MP_WALK_NO_ROW || result->stop == MP_WALK_RULE)
		result->row_stop = w.row_stop;
}
