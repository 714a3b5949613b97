/* SPDX-License-Identifier: GPL-2.0 */
/*
 * walk - finds the callers of the interrupted user code, by unwind rows, one frame after the other.
 * libprof/unwind/walk.c is the reference, and explains the steps; a walk ends with the first frame
 * that is not certain. The state of a walk lies in a map, so that the verifier checks one frame and
 * not all. Called by collector.
 */
#ifndef MD_BPF_WALK_H
#define MD_BPF_WALK_H

#include "daemon/source/bpf/mapped.bpf.h"
#include "daemon/source/bpf/rows.bpf.h"
#include "daemon/source/bpf/space.bpf.h"

#define WORD 8
/* Bytes between rsp and rbp in code without rows. All their words are looked at. */
#define BARE_FRAME_MAX 1024
/* Mappings that a walk asks the kernel for, so that no walk takes long. */
#define LOOK_UPS_MAX 1024
#define NR_CODES     16
/* Read at once, of which so many bytes lie before the word that is wanted. */
#define PIECE_BYTES  512
#define PIECE_BEFORE 64
#define PAGE_BYTES   4096
#define NR_PT_REGS   21 /* words of the kernel's struct pt_regs */
/* The first members of a rule that needs only rsp, whatever becomes of rbp. */
#define PLAIN	   (MORPH_ROW_REGISTER | MORPH_REG_RSP << 8 | MORPH_ROW_AT_CFA << 24)
#define PLAIN_MASK 0xff00ffffU

enum rbp_kind {
	RBP_VALUE,
	RBP_AT, /* saved at this address */
	RBP_UNKNOWN,
};

/*
 * Rules of addresses that walks have met, of one CPU. Most return addresses come again in the next
 * sample, and a look-up takes as long as all else of a frame. Rows in slabs never change.
 */
#define NR_KNOWN_SHIFT 9
#define NR_KNOWN       (1U << NR_KNOWN_SHIFT)

struct known_rule {
	__u64 vaddr;
	__u64 directory; /* of its file, + 1; 0: unused */
	struct morph_row_rule rule;
};

struct walk {
	__u64 regs[MORPH_NR_REGS]; /* of the innermost frame, by x86's numbers */
	__u64 ip, rsp, rbp, mm;
	__u64 at;	      /* the address by which the frame's code and row are found */
	__u64 slot;	      /* where @ip lay */
	__u64 nr, first, max; /* frames in the record; before the walk; at most */
	__u32 rbp_kind, is_back, stop;
	__u32 nr_look_ups, nr_codes, next_code, code;
	__u32 is_new;		     /* a file was met for the first time */
	__u32 is_asked;		     /* a file was met whose rows morphd may not have given yet */
	__u64 data_start, data_size; /* memory that is no code, met last */
	struct space space;	     /* whose mappings @codes and @data_start are */
	struct code codes[NR_CODES];
	__u64 node[NODE_WORDS];
	__u64 piece_start, piece_words; /* of the program's memory in @piece: addresses of words */
	__u8 piece[PIECE_BYTES + sizeof(__u64)];
	__u64 pt_regs[NR_PT_REGS];
	struct known_rule known[NR_KNOWN];
	struct md_wire_stack record;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

/* morphd knows a file so long after it was met first, and has given its rows if it has any. */
#define ASKED_NS 2000000000

/*
 * Files without rows that walks have met, and when they did first: that wakes morphd, which may not
 * know the file yet.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct md_wire_file_key);
	__type(value, __u64);
} asked SEC(".maps");

/*
 * Reads a word of the program's memory. Each read is a call that costs more than what it reads, and
 * the words of a stack lie near one another: what is around the word is read, too, within its page.
 */
static __always_inline bool read_word(struct walk *w, __u64 address, __u64 *word)
{
	__u64 in_page = address & (PAGE_BYTES - 1), start, off = address - w->piece_start;

	if (off >= w->piece_words) {
		start = in_page < PIECE_BEFORE ? address - in_page : address - PIECE_BEFORE;
		off = PAGE_BYTES - (start & (PAGE_BYTES - 1));
		if (off > PIECE_BYTES)
			off = PIECE_BYTES;
		w->piece_start = start;
		w->piece_words = off - (sizeof(*word) - 1);
		hide(off);
		off &= 2 * PIECE_BYTES - 1;
		if (off > PIECE_BYTES || in_page > PAGE_BYTES - sizeof(*word) ||
		    bpf_probe_read_user(w->piece, off, (const void *)start)) {
			w->piece_words = 0;
			return !bpf_probe_read_user(word, sizeof(*word), (const void *)address);
		}
		off = address - start;
	}
	hide(off);
	*word = *(const __u64 *)(w->piece + (off & (PIECE_BYTES - 1)));
	return true;
}

/* The value of rbp in the frame to be left. rbp is read only where a rule needs it. */
static __always_inline bool get_rbp(struct walk *w, __u64 *rbp)
{
	*rbp = w->rbp;
	return w->rbp_kind == RBP_VALUE || (w->rbp_kind == RBP_AT && read_word(w, w->rbp, rbp));
}

/* ---- what is mapped ----------------------------------------------------------------------- */

/* Finds the segment of @file that has @ip, and the part of @m that has its bias. */
static __always_inline bool describe_rows(const struct mapping *m, const struct md_wire_file *file,
					  __u64 ip, struct code *out)
{
	__u64 at = ip - m->start + m->off, from, to, end = m->off + (m->end - m->start);
	const struct morph_segment *s;
	__u32 i;

	for (i = 0; i < MORPH_ROWS_SEGMENTS_MAX && i < file->nr_segments; i++) {
		s = &file->segments[i];
		if (at - s->off >= s->size)
			continue;
		from = m->off > s->off ? m->off : s->off;
		to = end < s->off + s->size ? end : s->off + s->size;
		out->start = m->start + (from - m->off);
		out->size = to - from;
		out->bias = s->vaddr - s->off + m->off - m->start;
		out->base = file->base;
		out->nr_pages = file->nr_pages;
		out->directory = file->directory;
		out->rules = file->rules;
		out->kind = CODE_ROWS;
		return true;
	}
	return false;
}

static __always_inline void ask(struct walk *w, const struct md_wire_file_key *key)
{
	const __u64 *first = bpf_map_lookup_elem(&asked, key);
	__u64 now = w->record.task.time_ns;

	if (!first && !bpf_map_update_elem(&asked, key, &now, BPF_NOEXIST))
		w->is_new = true;
	if (!first || now - *first < ASKED_NS)
		w->is_asked = true;
}

static __always_inline bool describe(struct walk *w, const struct mapping *m, __u64 ip,
				     struct code *out)
{
	const struct mm_struct *mm = (const void *)w->mm;
	const struct md_wire_file *file = NULL;
	struct md_wire_file_key key;

	out->start = m->start;
	out->size = m->end - m->start;
	out->kind = CODE_BARE;
	if (!m->file && !m->ops)
		return true;
	if (m->file || m->start == (__u64)BPF_CORE_READ(mm, context.vdso)) {
		file = find_file(m, &key);
		if (!file)
			ask(w, &key);
	}
	if (!file) {
		out->kind = CODE_ASKED;
		w->space.is_sure = false; /* morphd may give its rows before the next walk */
	} else if (file->nr_pages) {
		return describe_rows(m, file, ip, out);
	}
	return true;
}

/*
 * Return: number + 1 of the entry in @w->codes that has @ip; 0: no code is known to be there. It is not
 * static: the verifier checks it on its own, once.
 */
__noinline __u32 find_code(struct walk *w, __u64 ip)
{
	struct mapping m = {};
	struct code *code;
	__u32 i;

	if (!w)
		return 0;
	for (i = 0; i < NR_CODES && i < w->nr_codes; i++)
		if (ip - w->codes[i].start < w->codes[i].size)
			return i + 1;
	if (ip - w->data_start < w->data_size || w->nr_look_ups >= LOOK_UPS_MAX)
		return 0;
	w->nr_look_ups++;
	if (!find_mapping(w->node, (const void *)w->mm, ip, &m))
		return 0;
	if (!(m.flags & VM_EXEC)) {
		w->data_start = m.start;
		w->data_size = m.end - m.start;
		return 0;
	}
	i = w->next_code & (NR_CODES - 1);
	code = &w->codes[i];
	if (!describe(w, &m, ip, code)) {
		code->size = 0;
		return 0;
	}
	w->next_code = i + 1;
	if (w->nr_codes < NR_CODES)
		w->nr_codes++;
	return i + 1;
}

/*
 * Finds what is mapped at the frame to be left. @code: what the frame before was in. Return: 0, or that
 * nothing is known to be.
 */
static __always_inline __u64 locate(struct walk *w, const struct code *code)
{
	__u32 found;

	if (w->at - code->start < code->size)
		return MORPH_STACK_UNSAID;
	found = find_code(w, w->at);
	if (!found)
		return w->nr_look_ups < LOOK_UPS_MAX ? MORPH_STACK_UNMAPPED : MORPH_STACK_DEPTH;
	w->code = found - 1;
	return MORPH_STACK_UNSAID;
}

/* Return: true if @address may be a return address: code is mapped before it. */
static __always_inline bool may_be_return(struct walk *w, __u64 address)
{
	return address && find_code(w, address - 1);
}

/* ---- one frame by its row ----------------------------------------------------------------- */

/* Computes the CFA. Return: 0, or why that is not possible. */
static __always_inline __u64 find_cfa(struct walk *w, const struct morph_row_rule *rule, __u64 *cfa)
{
	if (rule->cfa_reg == MORPH_REG_RSP) {
		*cfa = w->rsp;
	} else if (rule->cfa_reg == MORPH_REG_RBP) {
		if (!get_rbp(w, cfa))
			return MORPH_STACK_REGISTER;
	} else if (w->nr == w->first) {
		*cfa = w->regs[rule->cfa_reg & (MORPH_NR_REGS - 1)];
	} else {
		return MORPH_STACK_REGISTER;
	}
	*cfa += (__s64)rule->cfa_off;
	if (rule->cfa == MORPH_ROW_PLT && (__s32)(w->ip & 15) >= rule->cfa_add)
		*cfa += WORD;
	if (rule->cfa != MORPH_ROW_DEREF)
		return MORPH_STACK_UNSAID;
	if (!read_word(w, *cfa, cfa))
		return MORPH_STACK_COPY;
	*cfa += (__s64)rule->cfa_add;
	return MORPH_STACK_UNSAID;
}

/* Return: false: the rule needs rbp, which is not known. */
static __always_inline bool find_saved(struct walk *w, __u8 saved, __s32 off, __u64 cfa,
				       __u64 *address)
{
	__u64 base = cfa;

	if (saved == MORPH_ROW_AT_RSP)
		base = w->rsp;
	else if (saved == MORPH_ROW_AT_RBP && !get_rbp(w, &base))
		return false;
	*address = base + (__s64)off;
	return true;
}

/* The same, and where the return address lies. */
static __always_inline __u64 find_frame(struct walk *w, const struct morph_row_rule *rule,
					__u64 *cfa, __u64 *slot)
{
	__u64 stop;
	__u32 kinds;

	/* Nearly all frames: a test of all four members, as each test costs as much as an addition. */
	__builtin_memcpy(&kinds, rule, sizeof(kinds));
	if ((kinds & PLAIN_MASK) == PLAIN) {
		*cfa = w->rsp + (__s64)rule->cfa_off;
		*slot = *cfa + (__s64)rule->ra_off;
		return MORPH_STACK_UNSAID;
	}
	stop = find_cfa(w, rule, cfa);
	if (stop)
		return stop;
	return find_saved(w, rule->ra, rule->ra_off, *cfa, slot) ? MORPH_STACK_UNSAID
								 : MORPH_STACK_REGISTER;
}

/* Sets where the caller's rbp is. */
static __always_inline void save_rbp(struct walk *w, const struct morph_row_rule *rule, __u64 cfa)
{
	__u64 address = 0;
	bool is_known;

	if (rule->rbp == MORPH_ROW_SAME)
		return;
	is_known = rule->rbp != MORPH_ROW_UNKNOWN &&
		   find_saved(w, rule->rbp, rule->rbp_off, cfa, &address);
	w->rbp_kind = is_known ? RBP_AT : RBP_UNKNOWN;
	w->rbp = address;
}

/* Return: the rule of the link-time address @vaddr; NULL: the file has no row there. */
static __always_inline const struct morph_row_rule *rule_of(struct walk *w, const struct code *code,
							    __u64 vaddr)
{
	__u64 place = vaddr * 0x9e3779b97f4a7c15 >> (64 - NR_KNOWN_SHIFT);
	struct known_rule *known;

	hide(place);
	known = &w->known[place & (NR_KNOWN - 1)];
	hide(known); /* else its address is computed again for each use */
	if (known->vaddr == vaddr && known->directory == (__u64)code->directory + 1)
		return &known->rule;
	known->directory = 0;
	if (!find_rule(code, vaddr, &known->rule))
		return NULL;
	known->vaddr = vaddr;
	known->directory = (__u64)code->directory + 1;
	return &known->rule;
}

static __always_inline __u64 step_by_rule(struct walk *w, const struct code *code)
{
	const struct morph_row_rule *rule = rule_of(w, code, w->at + code->bias);
	__u64 cfa = 0, slot = 0, stop;

	if (!rule)
		return MORPH_STACK_NO_ROW;
	if (rule->cfa == MORPH_ROW_STOP) {
		if (rule->flags & MORPH_ROW_BOTTOM)
			return MORPH_STACK_BOTTOM;
		return rule->stop == MORPH_ROW_STOP_NO_ROW ? MORPH_STACK_NO_ROW : MORPH_STACK_RULE;
	}
	stop = find_frame(w, rule, &cfa, &slot);
	if (stop)
		return stop;
	if (!read_word(w, slot, &w->ip))
		return MORPH_STACK_COPY;
	w->slot = slot;
	save_rbp(w, rule, cfa);
	/*
	 * The caller's stack pointer is above. It moves back where a signal handler has its
	 * own stack.
	 */
	if (cfa <= w->rsp) {
		if (w->is_back)
			return MORPH_STACK_ORDER;
		w->is_back = true;
	}
	w->rsp = cfa;
	w->at = w->ip - !(rule->flags & MORPH_ROW_SIGNAL);
	return MORPH_STACK_UNSAID;
}

/* ---- one frame by rbp, in code without rows ------------------------------------------------ */

struct below {
	struct walk *w;
	__u64 rbp;
	__u32 stop;
};

/* Looks at one word between rsp and rbp. */
static long look_at(__u32 i, struct below *below)
{
	__u64 at = below->w->rsp + (__u64)i * WORD, word;

	if (at >= below->rbp)
		return 1;
	if (!read_word(below->w, at, &word))
		below->stop = MORPH_STACK_COPY;
	else if (may_be_return(below->w, word))
		below->stop = MORPH_STACK_NO_ROWS;
	else if (below->w->nr_look_ups >= LOOK_UPS_MAX)
		below->stop = MORPH_STACK_DEPTH;
	return below->stop != 0;
}

/*
 * A frame pointer is plausible if it lies a little above the stack pointer, code is mapped where
 * the return address leads, and no word below may be a return address.
 */
static __always_inline __u64 step_by_rbp(struct walk *w)
{
	struct below below = {.w = w};
	__u64 rsp = w->rsp, ip, caller;

	if (!get_rbp(w, &below.rbp) || below.rbp % WORD || rsp % WORD || below.rbp < rsp ||
	    below.rbp - rsp > BARE_FRAME_MAX)
		return MORPH_STACK_NO_ROWS;
	bpf_loop(BARE_FRAME_MAX / WORD, look_at, &below, 0);
	if (below.stop)
		return below.stop;
	if (!read_word(w, below.rbp, &caller) || !read_word(w, below.rbp + WORD, &ip))
		return MORPH_STACK_COPY;
	if (ip && !may_be_return(w, ip))
		return MORPH_STACK_NO_ROWS;
	w->ip = ip;
	w->at = ip - 1;
	w->slot = below.rbp + WORD;
	w->rsp = below.rbp + 2 * WORD;
	w->rbp = caller;
	w->rbp_kind = RBP_VALUE;
	return MORPH_STACK_UNSAID;
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* Goes to the caller. Return: why that is not possible; 0: it is in mapped code. */
static __always_inline __u64 step(struct walk *w)
{
	struct code *code = &w->codes[w->code & (NR_CODES - 1)];
	__u64 stop = MORPH_STACK_NO_ROWS;

	hide(code);
	if (code->kind == CODE_ROWS)
		stop = step_by_rule(w, code);
	else if (code->kind == CODE_BARE)
		stop = step_by_rbp(w);
	if (stop)
		return stop;
	/*
	 * By convention, the outermost frame without unwind information returns to 0. But
	 * there may be a 0 on a stack that the innermost function is about to change to.
	 */
	if (!w->ip)
		return w->nr == w->first ? MORPH_STACK_UNMAPPED : MORPH_STACK_BOTTOM;
	return locate(w, code);
}

static long add_frame(__u32 i, struct walk **at)
{
	struct walk *w = *at;
	__u64 stop = step(w), nr = w->nr;

	(void)i;
	if (!stop && nr >= w->max)
		stop = MORPH_STACK_DEPTH;
	if (stop) {
		w->stop = stop;
		return 1;
	}
	hide(nr);
	if (nr >= MD_WIRE_STACK_MAX)
		return 1;
	w->record.frames[nr].ip = w->ip;
	w->record.frames[nr].slot = w->slot;
	w->nr = nr + 1;
	return 0;
}

/* Forgets the mappings of the last walk, unless they are still the same. */
static __always_inline void enter_space(struct walk *w, const struct mm_struct *mm)
{
	struct space now;

	get_space(mm, &now);
	if (!is_same_space(&w->space, &now)) {
		w->nr_codes = w->next_code = 0;
		w->codes[0].size = w->data_size = 0;
	}
	w->space = now;
}

/* Walks from @w->pt_regs, in the address space that was entered. Sets @w->stop, and adds the callers to the record. */
static __always_inline void walk(struct walk *w)
{
	static const __u8 places[MORPH_NR_REGS] = {10, 11, 12, 5, 19, 4, 13, 14,
						   9,  8,  7,  6, 3,  2, 1,  0};
	__u32 i;

#pragma unroll
	for (i = 0; i < MORPH_NR_REGS; i++)
		w->regs[i] = w->pt_regs[places[i]];
	w->ip = w->at = w->pt_regs[16];
	w->rsp = w->regs[MORPH_REG_RSP];
	w->rbp = w->regs[MORPH_REG_RBP];
	w->rbp_kind = RBP_VALUE;
	w->first = w->nr;
	w->is_back = w->is_new = w->is_asked = false;
	w->nr_look_ups = w->code = w->piece_words = 0;
	w->stop = locate(w, &w->codes[0]);
	if (!w->stop)
		bpf_loop(MD_WIRE_STACK_MAX + 1, add_frame, &w, 0);
}

#endif
