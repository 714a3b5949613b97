// SPDX-License-Identifier: Apache-2.0
/*
 * inlined_states - runs calls of an original, and the code that replaces them in an output, on an emulated processor
 * (unicorn) from the same random states, and compares the states behind them. For tests of the editor.
 *
 *	inlined-states [--calls=N] [--states=N] [--seed=N] ORIGINAL OUTPUT
 *
 * At most --calls calls are run, equally distributed (default: all), each from --states states. Registers and memory hold small numbers, pointers and anything.
 * Memory that the program does not have appears when it is used, with contents that depend on its address and --seed
 * alone. Behind the call, these must be equal: general registers, flags, vector and x87 registers, and all
 * memory but that below the stack pointer. A pointer to a copy counts as one to its original. Where both end in a
 * fault, all but the flags must be equal there; the stack pointer may lack a return address.
 *
 * Prints numbers of calls and states, and a line for each difference. Exits 1 if there is one.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicorn/unicorn.h>

#include "editor/base/mix.h"
#include "libprof/elf/elf.h"
#include "libprof/note/map.h"
#include "libprof/note/map_calls.h"

enum {
	CALL = 5,   /* bytes of a call */
	LOWERS = 1, /* bytes of `push %rax`, which lowers the stack pointer in its place */
	PAGE = 4096,
	NR_GENERAL = 16,
	NR_VECTORS = 16,
	NR_X87 = 8,
	BLOCKS_MAX = 4000, /* a longer run is not compared */
	PAGES_MAX = 512,   /* that a run changes */
	APPEARED_MAX = 64, /* pages; more are taken away before the next state */
	EXITS_MAX = 64,
	BELOW = 1 << 17, /* bytes below the stack pointer that may differ */
};

#define STACK	    UINT64_C(0x7f0000000000)
#define STACK_SIZE  UINT64_C(0x100000)
#define STACK_POINT (STACK + STACK_SIZE / 2)
#define ARENA	    UINT64_C(0x7e0000000000)
#define ARENA_SIZE  UINT64_C(0x10000)
/* Each word below the stack pointer has this value, since no result may depend on a word's distance. */
#define STALE UINT64_C(0x5a5a5a5a5a5a5a5a)

static const int general[NR_GENERAL] = {
	UC_X86_REG_RAX, UC_X86_REG_RBX, UC_X86_REG_RCX, UC_X86_REG_RDX,
	UC_X86_REG_RSI, UC_X86_REG_RDI, UC_X86_REG_RBP, UC_X86_REG_RSP,
	UC_X86_REG_R8,	UC_X86_REG_R9,	UC_X86_REG_R10, UC_X86_REG_R11,
	UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15,
};

#define RSP 7 /* in @general */

struct vector {
	uint64_t part[2];
};

struct state {
	uint64_t general[NR_GENERAL], ip, flags, control;
	struct vector vectors[NR_VECTORS], x87[NR_X87];
	uc_err end;
};

/* A page that a run changed. */
struct page {
	uint64_t vaddr;
	uint8_t before[PAGE], after[PAGE];
};

struct run {
	uint32_t nr_pages, nr_blocks;
	struct page pages[PAGES_MAX];
	bool too_long, outside; /* outside: it left the code of both files */
};

struct test {
	const struct mp_elf *original, *output;
	const struct mp_map *map;
	uc_engine *uc;
	uc_context *fresh;
	uint64_t seed;
	uint64_t *appeared; /* pages */
	uint32_t nr_appeared;
	struct run *current;	  /* gets the pages that change */
	struct run before, after; /* of the original and of the output */
	uint64_t nr_calls, nr_states, nr_faults, nr_unfinished, nr_different;
};

/* ---- memory ----------------------------------------------------------------------------------- */

/* Return: a number of the kinds that programs have, chosen by @n. */
static uint64_t likely(const struct test *t, uint64_t n)
{
	const struct mp_section *data = mp_elf_section(t->original, ".data");
	uint64_t more = me_mix(n + 1);

	switch (n % 8) {
	case 0: return more % 4;
	case 1: return more % 300;
	case 2: return (uint64_t) - (int64_t)(more % 50);
	case 3:
	case 4:
	case 5: return ARENA + more % (ARENA_SIZE - 256) / 8 * 8;
	case 6: return data && data->size > 8 ? data->vaddr + more % data->size / 8 * 8 : more;
	default: return more;
	}
}

static void fill(const struct test *t, uint64_t vaddr, uint8_t page[PAGE])
{
	for (uint64_t k = 0; k < PAGE; k += 8) {
		uint64_t word = likely(t, me_mix(t->seed * 0x9e3779b97f4a7c15 + vaddr + k));

		if (vaddr + k - STACK < STACK_POINT - STACK)
			word = STALE;
		memcpy(page + k, &word, sizeof(word));
	}
}

static void stop(struct test *t)
{
	t->current->too_long = true;
	uc_emu_stop(t->uc);
}

static bool on_missing(uc_engine *uc, uc_mem_type type, uint64_t at, int size, int64_t value,
		       void *ctx)
{
	struct test *t = ctx;
	uint64_t first = at & -(uint64_t)PAGE, last = (at + (uint64_t)size - 1) & -(uint64_t)PAGE;
	uint8_t page[PAGE];
	bool done = false;

	(void)value;
	/* The last page stays missing, so that no access reaches from there to address 0. */
	if (type == UC_MEM_FETCH_UNMAPPED || at >= -(uint64_t)PAGE)
		return false;
	for (uint64_t vaddr = first; vaddr <= last && vaddr - first <= PAGE; vaddr += PAGE) {
		if (t->nr_appeared == APPEARED_MAX + PAGES_MAX) {
			stop(t);
			return false;
		}
		if (uc_mem_map(uc, vaddr, PAGE, UC_PROT_READ | UC_PROT_WRITE))
			continue; /* it is there */
		t->appeared[t->nr_appeared++] = vaddr;
		fill(t, vaddr, page);
		uc_mem_write(uc, vaddr, page, PAGE);
		done = true;
	}
	return done;
}

/* Takes away the pages that appeared, if they are many: they slow the emulator down. */
static void take_away(struct test *t)
{
	if (t->nr_appeared < APPEARED_MAX)
		return;
	while (t->nr_appeared)
		uc_mem_unmap(t->uc, t->appeared[--t->nr_appeared], PAGE);
}

static bool keeps(const struct run *run, uint64_t vaddr)
{
	for (uint32_t i = 0; i < run->nr_pages; i++)
		if (run->pages[i].vaddr == vaddr)
			return true;
	return false;
}

static void on_write(uc_engine *uc, uc_mem_type type, uint64_t at, int size, int64_t value,
		     void *ctx)
{
	struct test *t = ctx;
	struct run *run = t->current;
	uint64_t first = at & -(uint64_t)PAGE, last = (at + (uint64_t)size - 1) & -(uint64_t)PAGE;

	(void)type;
	(void)value;
	for (uint64_t vaddr = first; vaddr <= last && vaddr - first <= PAGE; vaddr += PAGE) {
		struct page *page = &run->pages[run->nr_pages];

		if (keeps(run, vaddr))
			continue;
		if (run->nr_pages == PAGES_MAX) {
			stop(t);
			return;
		}
		page->vaddr = vaddr;
		/* If it is missing, it appears now, and holds what it would have held. */
		if (uc_mem_read(uc, vaddr, page->before, PAGE))
			fill(t, vaddr, page->before);
		run->nr_pages++;
	}
}

static bool is_code(const struct mp_elf *elf, uint64_t at)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X && at - ph->p_vaddr < ph->p_filesz)
			return true;
	}
	return false;
}

/* A jump through a slot that no loader filled may lead to bytes that are no code: the run ends there. */
static void on_block(uc_engine *uc, uint64_t at, uint32_t size, void *ctx)
{
	struct test *t = ctx;

	(void)size;
	if (t->current->nr_blocks++ == BLOCKS_MAX)
		stop(t);
	if (is_code(t->original, at) || is_code(t->output, at))
		return;
	t->current->outside = true;
	uc_emu_stop(uc);
}

/* Keeps what the run wrote, and puts the old contents back. */
static void take_back(struct test *t)
{
	for (uint32_t i = 0; i < t->current->nr_pages; i++) {
		struct page *page = &t->current->pages[i];

		if (uc_mem_read(t->uc, page->vaddr, page->after, PAGE))
			memcpy(page->after, page->before, PAGE); /* the write failed */
		else
			uc_mem_write(t->uc, page->vaddr, page->before, PAGE);
	}
}

/* Maps the file's segments that lie in [@start, @end), with the loader's relocations that need no other file. */
static bool map_segments(struct test *t, const struct mp_elf *elf, uint64_t start, uint64_t end)
{
	uint64_t mapped = 0; /* up to here: two segments may share a page */

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];
		uint64_t from = ph->p_vaddr & -(uint64_t)PAGE;
		uint64_t to = (ph->p_vaddr + ph->p_memsz + PAGE - 1) & -(uint64_t)PAGE;

		if (ph->p_type != PT_LOAD || ph->p_vaddr < start || ph->p_vaddr >= end)
			continue;
		if (from < mapped)
			from = mapped;
		if (from < to && uc_mem_map(t->uc, from, to - from, UC_PROT_ALL))
			return false;
		mapped = to;
		if (uc_mem_write(t->uc, ph->p_vaddr, elf->data + ph->p_offset, ph->p_filesz))
			return false;
		if (ph->p_flags & PF_X && from < to)
			uc_mem_protect(t->uc, from, to - from, UC_PROT_READ | UC_PROT_EXEC);
	}
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &elf->dyn_relocs[i];

		if (rel->type == R_X86_64_RELATIVE && rel->vaddr >= start && rel->vaddr < end)
			uc_mem_write(t->uc, rel->vaddr, &rel->addend, sizeof(rel->addend));
	}
	return true;
}

static uint64_t new_segment(const struct test *t)
{
	const struct mp_section *text = mp_elf_section(t->output, ".morph.text");

	for (uint32_t i = 0; i < t->output->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &t->output->phdrs[i];

		if (ph->p_type == PT_LOAD && text->vaddr - ph->p_vaddr < ph->p_memsz)
			return ph->p_vaddr;
	}
	return text->vaddr;
}

/* ---- states ----------------------------------------------------------------------------------- */

static void set_state(const struct test *t, uint64_t n)
{
	uint64_t flags, sp = STACK_POINT, base = ARENA;
	struct vector v;

	for (int i = 0; i < NR_GENERAL; i++) {
		uint64_t value = likely(t, n = me_mix(n + 1));

		uc_reg_write(t->uc, general[i], &value);
	}
	for (int i = 0; i < NR_VECTORS; i++) {
		v.part[0] = likely(t, n = me_mix(n + 1));
		v.part[1] = n % 3 ? 0 : likely(t, me_mix(n));
		uc_reg_write(t->uc, UC_X86_REG_XMM0 + i, &v);
	}
	flags = (me_mix(n) & 0x8d5) | 2; /* arithmetic flags */
	uc_reg_write(t->uc, UC_X86_REG_EFLAGS, &flags);
	uc_reg_write(t->uc, UC_X86_REG_RSP, &sp);
	uc_reg_write(t->uc, UC_X86_REG_FS_BASE, &base);
}

static void get_state(const struct test *t, struct state *s)
{
	for (int i = 0; i < NR_GENERAL; i++)
		uc_reg_read(t->uc, general[i], &s->general[i]);
	for (int i = 0; i < NR_VECTORS; i++)
		uc_reg_read(t->uc, UC_X86_REG_XMM0 + i, &s->vectors[i]);
	for (int i = 0; i < NR_X87; i++)
		uc_reg_read(t->uc, UC_X86_REG_ST0 + i, &s->x87[i]);
	uc_reg_read(t->uc, UC_X86_REG_RIP, &s->ip);
	uc_reg_read(t->uc, UC_X86_REG_EFLAGS, &s->flags);
	uc_reg_read(t->uc, UC_X86_REG_MXCSR, &s->control);
}

/* Runs from @at to one of the exits, with the state of number @n. */
static void run(struct test *t, struct run *into, uint64_t n, uint64_t at, const uint64_t *exits,
		size_t nr_exits, struct state *s)
{
	t->current = into;
	into->nr_pages = into->nr_blocks = 0;
	into->too_long = into->outside = false;
	memset(s, 0, sizeof(*s));
	uc_context_restore(t->uc, t->fresh);
	set_state(t, n);
	for (size_t i = 0; i < nr_exits; i++)
		if (exits[i] == at) { /* Nothing stands in place of the call. */
			uc_reg_write(t->uc, UC_X86_REG_RIP, &at);
			get_state(t, s);
			return;
		}
	uc_ctl_set_exits(t->uc, (uint64_t *)(uintptr_t)exits, nr_exits);
	/* Code that was translated before runs past exits that are new. */
	for (size_t i = 0; i < nr_exits; i++)
		uc_ctl_remove_cache(t->uc, exits[i] & -(uint64_t)PAGE, exits[i] + 1);
	s->end = uc_emu_start(t->uc, at, 0, 0, 0);
	if (into->outside && !s->end)
		s->end = UC_ERR_FETCH_PROT;
	get_state(t, s);
	take_back(t);
}

/* ---- comparison ------------------------------------------------------------------------------- */

/* Are both values equal, or the addresses of one place? */
static bool same_value(const struct test *t, uint64_t was, uint64_t now)
{
	return was == now || (mp_map_piece_at(t->map, now) < t->map->nr_pieces &&
			      mp_map_original(t->map, now) == was);
}

static const struct page *page_of(const struct run *run, uint64_t vaddr)
{
	for (uint32_t i = 0; i < run->nr_pages; i++)
		if (run->pages[i].vaddr == vaddr)
			return &run->pages[i];
	return NULL;
}

/* Return: bytes from offset @k on that are the same in both, since they hold addresses of one place; 0: none. */
static uint64_t same_pointer(const struct test *t, const uint8_t *a, const uint8_t *b, uint64_t k)
{
	uint64_t was, now;

	for (uint64_t at = k < 7 ? 0 : k - 7; at <= k && at + 8 <= PAGE; at++) {
		memcpy(&was, a + at, sizeof(was));
		memcpy(&now, b + at, sizeof(now));
		if (same_value(t, was, now) || same_value(t, now, was))
			return at + 8 - k;
	}
	return 0;
}

/* Is the page the same in both runs, of which the second may not have changed it? */
static bool same_page(const struct test *t, const struct page *a, const struct page *b)
{
	const uint8_t *now = b ? b->after : a->before;
	uint64_t skip;

	for (uint64_t k = 0; k < PAGE; k += skip) {
		skip = a->after[k] == now[k] || a->vaddr + k - (STACK_POINT - BELOW) < BELOW
			       ? 1
			       : same_pointer(t, a->after, now, k);
		if (!skip)
			return false;
	}
	return true;
}

static bool same_memory(const struct test *t, uint64_t *where)
{
	const struct run *runs[2] = {&t->before, &t->after};

	for (int i = 0; i < 2; i++)
		for (uint32_t k = 0; k < runs[i]->nr_pages; k++) {
			const struct page *page = &runs[i]->pages[k];

			*where = page->vaddr;
			if (!same_page(t, page, page_of(runs[!i], page->vaddr)))
				return false;
		}
	return true;
}

/* Return: what differs; NULL: nothing. @raised: bytes by which the output's stack pointer may be higher. */
static const char *compare(const struct test *t, const struct state *was, const struct state *now,
			   uint64_t raised, uint64_t *where)
{
	static const char *const names[NR_GENERAL] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi",
						      "rbp", "rsp", "r8",  "r9",  "r10", "r11",
						      "r12", "r13", "r14", "r15"};

	*where = 0;
	if (was->end != now->end)
		return "another end";
	for (int i = 0; i < NR_GENERAL; i++)
		if (!same_value(t, was->general[i] + (i == RSP ? raised : 0), now->general[i]))
			return names[i];
	/* At a fault, the emulator computes neither the flags nor the place in a block. */
	if (!was->end && was->flags != now->flags)
		return "flags";
	for (int i = 0; i < NR_VECTORS; i++)
		if (!same_value(t, was->vectors[i].part[0], now->vectors[i].part[0]) ||
		    !same_value(t, was->vectors[i].part[1], now->vectors[i].part[1]))
			return "vectors";
	if (memcmp(was->x87, now->x87, sizeof(was->x87)) != 0 || was->control != now->control)
		return "floating point";
	return same_memory(t, where) ? NULL : "memory";
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* Return: the number of places where control may go behind the call; the first is the original's. */
static size_t find_exits(const struct test *t, uint64_t back, uint64_t exits[EXITS_MAX])
{
	size_t nr = 0;

	exits[nr++] = back;
	for (uint32_t i = 0; i < t->map->nr_pieces && nr < EXITS_MAX; i++)
		if (t->map->pieces[i].old_vaddr == back && !mp_map_call_of_piece(t->map, i))
			exits[nr++] = t->map->pieces[i].new_vaddr;
	return nr;
}

static bool is_lowered(const struct test *t, const struct mp_map_piece *caller)
{
	const uint8_t *b = caller->new_size + 4 != caller->old_size
				   ? NULL
				   : mp_elf_bytes(t->output,
						  caller->new_vaddr + caller->new_size - LOWERS,
						  LOWERS);

	return b && *b == 0x50;
}

static void try_call(struct test *t, const struct mp_map_call *call, unsigned long nr_states)
{
	const struct mp_map_piece *first = &t->map->pieces[call->first], *caller = first - 1;
	bool lowered = is_lowered(t, caller);
	uint64_t exits[EXITS_MAX], where, at = first->new_vaddr - (lowered ? LOWERS : 0);
	size_t nr_exits = find_exits(t, call->back, exits);
	struct state was, now;

	t->nr_calls++;
	for (unsigned long i = 0; i < nr_states; i++) {
		uint64_t n = me_mix(t->seed + me_mix(call->back + i));
		const char *what;

		take_away(t);
		run(t, &t->before, n, call->back - CALL, exits, 1, &was);
		run(t, &t->after, n, at, exits, nr_exits, &now);
		t->nr_states++;
		if (t->before.too_long || t->after.too_long) {
			t->nr_unfinished++;
			continue;
		}
		t->nr_faults += was.end != UC_ERR_OK;
		what = compare(t, &was, &now, 0, &where);
		/* A fault where the return address is missing, or at a call that stands for a jump */
		if (what && was.end)
			what = compare(t, &was, &now, 8, &where);
		if (!what)
			continue;
		if (t->nr_different++ < 20)
			printf("call at %#" PRIx64 " of %#" PRIx64 ", state %lu: %s (%#" PRIx64
			       "), ends %d and %d at %#" PRIx64 " and %#" PRIx64 "\n",
			       call->back - CALL, call->callee, i, what, where, was.end, now.end,
			       was.ip, now.ip);
	}
}

/* Is this the code in place of the call, not a part of it that lies apart? */
static bool is_in_place(const struct test *t, const struct mp_map_call *call)
{
	const struct mp_map_piece *first = &t->map->pieces[call->first];

	return call->first && first[-1].old_vaddr + first[-1].old_size == call->back &&
	       first->old_vaddr - call->callee <= 4 &&
	       first[-1].new_vaddr + first[-1].new_size == first->new_vaddr;
}

/* ---- program ---------------------------------------------------------------------------------- */

struct options {
	unsigned long nr_calls, nr_states;
	uint64_t seed;
	const char *file[2];
	int nr_files;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'c': o->nr_calls = strtoul(arg, NULL, 10); return 0;
	case 'n': o->nr_states = strtoul(arg, NULL, 10); return 0;
	case 's': o->seed = strtoull(arg, NULL, 10); return 0;
	case ARGP_KEY_ARG:
		if (o->nr_files == 2)
			argp_usage(state);
		o->file[o->nr_files++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->nr_files < 2)
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static bool prepare(struct test *t)
{
	uint64_t start = new_segment(t);
	uc_hook hook;

	if (uc_open(UC_ARCH_X86, UC_MODE_64, &t->uc) || uc_ctl_exits_enable(t->uc))
		return false;
	if (!map_segments(t, t->original, 0, UINT64_MAX) ||
	    !map_segments(t, t->output, start, start + 1))
		return false;
	return !uc_hook_add(t->uc, &hook, UC_HOOK_MEM_UNMAPPED, (void *)on_missing, t, 1, 0) &&
	       !uc_hook_add(t->uc, &hook, UC_HOOK_MEM_WRITE, (void *)on_write, t, 1, 0) &&
	       !uc_hook_add(t->uc, &hook, UC_HOOK_BLOCK, (void *)on_block, t, 1, 0);
}

static int test(struct test *t, const struct options *o)
{
	uint32_t nr = 0, every, n = 0;

	for (uint32_t i = 0; i < t->map->nr_calls; i++)
		nr += is_in_place(t, &t->map->calls[i]);
	every = o->nr_calls && nr > o->nr_calls ? nr / (uint32_t)o->nr_calls + 1 : 1;
	t->appeared = calloc(APPEARED_MAX + PAGES_MAX, sizeof(*t->appeared));
	t->seed = o->seed;
	if (!t->appeared || !prepare(t) || uc_context_alloc(t->uc, &t->fresh) ||
	    uc_context_save(t->uc, t->fresh))
		return -1;
	for (uint32_t i = 0; i < t->map->nr_calls; i++)
		if (is_in_place(t, &t->map->calls[i]) && n++ % every == 0)
			try_call(t, &t->map->calls[i], o->nr_states);
	uc_context_free(t->fresh);
	uc_close(t->uc);
	free(t->appeared);
	printf("%" PRIu64 " calls, %" PRIu64 " states, %" PRIu64 " end in a fault, %" PRIu64
	       " unfinished, %" PRIu64 " differ\n",
	       t->nr_calls, t->nr_states, t->nr_faults, t->nr_unfinished, t->nr_different);
	return t->nr_different ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{"calls", 'c', "N", 0, "at most so many calls", 0},
		{"states", 'n', "N", 0, "states for each call (default 10)", 0},
		{"seed", 's', "N", 0, "other states", 0},
		{0},
	};
	static const struct argp argp = {known, parse, "ORIGINAL OUTPUT", NULL, NULL, NULL, NULL};
	struct options o = {.nr_states = 10, .seed = 1};
	struct mp_elf *original, *output;
	struct test *t = calloc(1, sizeof(*t));
	struct mp_map *map;
	struct mp_err err;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (!t || mp_elf_open(o.file[0], MP_ELF_ALL, &original, &err) ||
	    mp_elf_open(o.file[1], MP_ELF_ALL, &output, &err) || mp_map_read(output, &map, &err)) {
		fprintf(stderr, "inlined-states: %s\n", err.msg);
		return 2;
	}
	t->original = original;
	t->output = output;
	t->map = map;
	rc = test(t, &o);
	if (rc < 0)
		fprintf(stderr, "inlined-states: the emulator does not start\n");
	mp_map_free(map);
	mp_elf_close(output);
	mp_elf_close(original);
	free(t);
	return rc < 0 ? 2 : rc;
}
