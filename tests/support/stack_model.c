// SPDX-License-Identifier: Apache-2.0
/* stack_model - a made-up program and its stacks; see stack_model.h. */
#include "tests/support/stack_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/unwind/rows_compile.h"
#include "tests/support/frames.h"
#include "tests/support/kmod_walk.h"

#define BIAS	  UINT64_C(0x7f0000000000) /* where the module is mapped */
#define JIT	  UINT64_C(0x7e0000000000) /* code without rows */
#define JIT_SIZE  0x1000
#define NR_WORDS  2048
#define DEPTH_MAX 200

/* The end of each stack. */
static const uint64_t tops[] = {0x7ffe00010000, 0x7ffd00010000, 0x7fff00010000};
#define NR_STACKS 3

/* Kinds of functions, by their addresses in the module: each has 0x10 bytes. */
enum kind {
	LEAF = 0x1000,	    /* CFA = rsp + 8 */
	SAVES = 0x1010,	    /* CFA = rsp + 24, rbp at CFA - 16 */
	BY_RBP = 0x1020,    /* CFA = rbp + 16, rbp at CFA - 16 */
	LOSES = 0x1030,	    /* CFA = rsp + 8, rbp is undefined */
	REALIGNED = 0x1040, /* CFA = the word at rbp - 8, rbp at rbp + 0 */
	BY_RBX = 0x1050,    /* CFA = rbx + 16: only in the innermost frame */
	SIGNAL = 0x1060,    /* the return from a signal handler */
	BOTTOM = 0x1070,
	BARE = 1, /* code without rows, that has a frame pointer */
};

static const enum kind kinds[16] = {LEAF, SAVES, BY_RBP, LOSES, REALIGNED, BARE,   SAVES, LEAF,
				    LEAF, SAVES, BY_RBP, SAVES, SAVES,	   BY_RBP, LEAF,  LEAF};

/* Walks seldom get past the two kinds that lose rbp. */
static enum kind kind_of(uint8_t where)
{
	enum kind kind = kinds[where / 16];

	return (kind == LOSES || kind == REALIGNED) && where % 16 > 1 ? LEAF : kind;
}

struct call {
	enum kind kind;
	uint64_t slot, rsp, rbp, rbx; /* where the caller's address lies; its registers */
	uint64_t serial;
	uint64_t ip; /* of a signal: where the program goes on */
	int stack;
};

struct model {
	const uint8_t *bytes;
	size_t left;
	struct frames frames;
	struct mp_rows rows;
	void *table;
	uint64_t words[NR_STACKS][NR_WORDS];
	struct call calls[DEPTH_MAX];
	int nr, stack;
	uint64_t rsp, rbp, rbx, ip, serial, sampled_serial;
	bool has_damage; /* this program damages its stack */
	struct kmod_walk *walk;
	struct stack_model_totals *totals;
};

static uint8_t draw(struct model *m)
{
	if (!m->left)
		return 0;
	m->left--;
	return *m->bytes++;
}

/* ---- what the walkers see ------------------------------------------------------------------- */

static enum mp_walk_code find(void *arg, uint64_t ip, const struct mp_rows **rows, uint64_t *vaddr)
{
	struct model *m = arg;

	if (ip - JIT < JIT_SIZE)
		return MP_WALK_BARE;
	if (ip - BIAS >= 0x2000)
		return MP_WALK_NOTHING;
	*rows = &m->rows;
	*vaddr = ip - BIAS;
	return MP_WALK_ROWS;
}

static uint64_t *word_at(struct model *m, uint64_t address)
{
	for (int i = 0; i < NR_STACKS; i++) {
		uint64_t start = tops[i] - NR_WORDS * 8;

		if (address % 8 == 0 && address - start < NR_WORDS * 8)
			return &m->words[i][(address - start) / 8];
	}
	return NULL;
}

static bool read_word(void *arg, uint64_t address, uint64_t *word)
{
	const uint64_t *at = word_at(arg, address);

	if (at)
		*word = *at;
	return at;
}

/* ---- what the program does ------------------------------------------------------------------ */

static void push(struct model *m, uint64_t word)
{
	m->rsp -= 8;
	*word_at(m, m->rsp) = word;
}

static uint64_t address_in(enum kind kind, uint8_t where)
{
	return kind == BARE ? JIT + 0x100 + where % 16 : BIAS + kind + 1 + where % 14;
}

/* Runs the first instructions of a function, which save registers in the newest frame. */
static void enter(struct model *m, enum kind kind, uint8_t where)
{
	uint64_t cfa = m->rsp + 8;

	m->ip = address_in(kind, where);
	switch (kind) {
	case SAVES:
		push(m, m->rbp);
		push(m, where);
		m->rbp = where % 2 ? where : cfa + 8 * (where % 5); /* garbage */
		break;
	case BARE:
	case BY_RBP:
		push(m, m->rbp);
		m->rbp = m->rsp;
		for (int i = where % 4; i > 0; i--)
			push(m, 0);
		break;
	case LOSES: m->rbp = where; break;
	case REALIGNED:
		m->rsp = (m->rsp & ~UINT64_C(63)) - 64;
		push(m, m->rbp);
		m->rbp = m->rsp;
		push(m, cfa);
		break;
	case BY_RBX:
		push(m, 0);
		m->rbx = m->rsp;
		push(m, 0);
		break;
	default: break;
	}
}

static bool has_room(const struct model *m)
{
	return m->nr < DEPTH_MAX && tops[m->stack] - m->rsp < (NR_WORDS - 64) * 8;
}

static void call(struct model *m, enum kind kind, uint8_t where)
{
	struct call *c = m->calls + m->nr;

	if (!has_room(m) || (m->nr && m->calls[m->nr - 1].kind == BY_RBX))
		return;
	m->nr++;
	*c = (struct call){.kind = kind,
			   .rbp = m->rbp,
			   .rbx = m->rbx,
			   .serial = ++m->serial,
			   .stack = m->stack};
	push(m, m->ip);
	c->slot = m->rsp;
	c->rsp = m->rsp + 8;
	enter(m, kind, where);
}

static void give_back(struct model *m)
{
	const struct call *c;

	if (!m->nr)
		return;
	c = &m->calls[--m->nr];
	m->rsp = c->rsp;
	m->rbp = c->rbp;
	m->rbx = c->rbx;
	m->stack = c->stack;
	m->ip = c->kind == SIGNAL ? c->ip : *word_at(m, c->slot);
}

/* The newest function ends with a jump to another one. */
static void jump(struct model *m, enum kind kind, uint8_t where)
{
	struct call *c;

	if (!m->nr || m->calls[m->nr - 1].kind == SIGNAL)
		return;
	c = &m->calls[m->nr - 1];
	m->rsp = c->slot;
	m->rbp = c->rbp;
	m->rbx = c->rbx;
	c->kind = kind;
	enter(m, kind, where);
}

/* The kernel's frame, and the handler's. @stack: where they lie. */
static void take_signal(struct model *m, int stack, uint8_t where)
{
	struct call *c = m->calls + m->nr;
	uint64_t rsp = m->rsp;
	int from = m->stack;

	if (m->nr + 2 > DEPTH_MAX || !has_room(m))
		return;
	if (stack != m->stack && m->stack == 0) {
		m->stack = stack;
		m->rsp = tops[stack] - 64;
	} else {
		m->rsp -= 128; /* the red zone */
	}
	*c = (struct call){.kind = SIGNAL,
			   .rsp = rsp,
			   .rbp = m->rbp,
			   .rbx = m->rbx,
			   .serial = ++m->serial,
			   .ip = m->ip,
			   .stack = from};
	push(m, m->ip);
	c->slot = m->rsp;
	push(m, rsp);
	push(m, m->rbp);
	push(m, 0);
	m->nr++;
	/* The handler returns to the code behind SIGNAL's first byte. */
	m->ip = BIAS + SIGNAL + 1;
	call(m, LEAF, where);
}

/* ---- samples -------------------------------------------------------------------------------- */

static void sample(struct model *m, uint32_t max)
{
	const struct mp_walk_ops ops = {.find = find, .read = read_word, .arg = m};
	struct mp_walk_start start = {.ip = m->ip};
	struct stack_model_totals *t = m->totals;
	static struct kmod_walk_result ours;
	static uint64_t ips[KMOD_WALK_MAX];
	struct mp_walk_result theirs;
	uint64_t newest = m->sampled_serial;
	uint32_t i;

	start.regs[MORPH_REG_RSP] = m->rsp;
	start.regs[MORPH_REG_RBP] = m->rbp;
	start.regs[MORPH_REG_RBX] = m->rbx;
	mp_walk(&ops, &start, ips, max, &theirs);
	kmod_walk_run(m->walk, &ops, &start, max, &ours);
	t->samples++;
	t->frames += ours.nr;
	t->read_again += ours.nr_read;
	t->aged += ours.is_aged;
	t->complete += ours.stop == MORPH_STACK_BOTTOM;
	t->wrong += (int)ours.stop != (int)theirs.stop || ours.nr != theirs.nr ||
		    memcmp(ours.ips, ips, theirs.nr * sizeof(ips[0]));
	m->sampled_serial = m->serial;
	/* A walk that was misled knows nothing of calls. */
	if (!ours.is_aged || m->has_damage)
		return;
	/* The walk's first addresses are those of the newest calls. */
	for (i = 0; i < ours.nr && i < (uint32_t)m->nr; i++) {
		const struct call *c = &m->calls[m->nr - 1 - (int)i];
		bool is_new = c->serial > newest, said_new = i < ours.nr - ours.nr_old;

		t->new_frames += is_new;
		t->said_new += is_new && said_new;
		t->lied += said_new && !is_new;
	}
}

/* The program overwrites a return address, or what may be a saved rbp. */
static void damage(struct model *m, uint8_t where)
{
	if (!m->nr || !m->has_damage)
		return;
	*word_at(m, m->calls[where % m->nr].slot - (where & 16 ? 8 : 0)) += where & 8 ? 8 : 1;
}

static void step(struct model *m, uint8_t what)
{
	uint8_t where = draw(m);

	switch (what % 16) {
	case 0:
	case 1:
	case 2:
	case 3: call(m, kind_of(where), where % 4); break;
	case 4:
	case 5:
	case 6:
	case 7: give_back(m); break;
	case 8: jump(m, kind_of(where), where); break;
	case 9: take_signal(m, where % 4 ? 0 : 1 + where / 4 % 2, where); break;
	case 10: /* a long jump */
		for (int i = where % 64; i > 0; i--)
			give_back(m);
		break;
	case 11: /* a deep recursion */
		for (int i = where % 16 ? where % 8 : where; i > 0; i--)
			call(m, SAVES, 3);
		break;
	case 12: call(m, BY_RBX, where); break;
	case 13:
		if (where % 8 == 0)
			kmod_walk_change_code(m->walk);
		if (where % 8 == 1)
			damage(m, where);
		break;
	default: sample(m, where % 4 ? KMOD_WALK_MAX : 1 + where / 4); break;
	}
}

static int make_rows(struct model *m)
{
	struct frames *f = &m->frames;
	struct mp_cursor cur;
	size_t size;

	frames_cie(f, false);
	FRAMES_FDE(f, LEAF, 0x10, 0);
	FRAMES_FDE(f, SAVES, 0x10, 0x0e, 24, 0x86, 2);
	FRAMES_FDE(f, BY_RBP, 0x10, 0x0c, 6, 16, 0x86, 2);
	FRAMES_FDE(f, LOSES, 0x10, 0x07, 6);
	/* CFA = *(rbp - 8), rbp at rbp + 0 */
	FRAMES_FDE(f, REALIGNED, 0x10, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0);
	FRAMES_FDE(f, BY_RBX, 0x10, 0x0c, 3, 16);
	FRAMES_FDE(f, BOTTOM, 0x10, 0x07, 16);
	frames_cie(f, true);
	/* CFA = *(rsp + 16), rbp at rsp + 8, rip at rsp + 24 */
	FRAMES_FDE(f, SIGNAL, 0x10, 0x0f, 3, 0x77, 16, 0x06, 0x10, 6, 2, 0x77, 8, 0x10, 16, 2, 0x77,
		   24);
	cur = frames_cursor(f);
	if (mp_rows_compile(&cur, true, 0, NULL, &m->table, &size, NULL))
		return -1;
	return mp_rows_open("made", m->table, size, &m->rows, NULL);
}

void stack_model_run(const uint8_t *bytes, size_t size, struct stack_model_totals *totals)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->bytes = bytes;
	m->left = size;
	m->totals = totals;
	m->walk = kmod_walk_new();
	if (!m->walk || make_rows(m))
		abort();
	m->rsp = tops[0] - 64;
	m->ip = BIAS + BOTTOM + 4;
	m->has_damage = draw(m) % 2;
	while (m->left)
		step(m, draw(m));
	sample(m, KMOD_WALK_MAX);
	kmod_walk_free(m->walk);
	free(m->table);
	free(m);
}
