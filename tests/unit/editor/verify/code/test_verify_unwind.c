// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_unwind - changes unwind sections and exception tables of outputs: every step at every border of every
 * program, fields of CIEs, encodings, ranges, tables, call sites. verify refuses them, or each unwinder
 * finds the same at each instruction (tests/support/unwinders).
 *
 * With MORPH_LONG=1 it makes many more changes; others by SEED in the environment.
 */
#include "tests/unit/suite.h"

#include "editor/base/mix.h"
#include "tests/support/unwinders/unwind_mutant.h"
#include "tests/support/unwinders/unwinders.h"
#include "tests/unit/verify_pair.h"

struct build {
	const char *command;
	enum pair_kind kind;
	uint64_t seed;
	const char *needs; /* a program that must be there */
};

static const struct build builds[] = {
	{"g++ -O2 tests/data/mutants.cc", PAIR_PLAIN, 0, NULL},
	{"g++ -O2 -fPIE -pie -s tests/data/exceptions.cc", PAIR_PLAIN, 3, NULL},
	{"g++ -O2 -fno-pie -no-pie -Wl,--emit-relocs tests/data/exceptions.cc", PAIR_PLAIN, 3,
	 NULL},
	{"g++ -O1 -static tests/data/mutants.cc", PAIR_PLAIN, 0, NULL},
	{"g++ -O2 -fuse-ld=lld tests/data/exceptions.cc", PAIR_PLAIN, 0, "/usr/bin/ld.lld"},
	{"g++ -O2 -fuse-ld=mold tests/data/exceptions.cc", PAIR_PLAIN, 0, "/usr/bin/mold"},
	{"g++ -O2 -fuse-ld=lld -static tests/data/mutants.cc", PAIR_PLAIN, 0, "/usr/bin/ld.lld"},
	{"rustc -O -C linker=cc tests/data/linkers.rs", PAIR_PLAIN, 0, "/usr/bin/rustc"},
	{"gcc -O2 -fexceptions -s tests/data/leaf_stack.c", PAIR_DIVIDED, 3, NULL},
	{"g++ -O2 tests/data/exceptions.cc", PAIR_DIVIDED, 3, NULL},
	{"g++ -O2 tests/data/mutants.cc", PAIR_COUNTS, 0, NULL},
	{"g++ -O2 tests/data/mutants.cc", PAIR_AUDITS, 0, NULL},
};

#define NR_BUILDS ((int)(sizeof(builds) / sizeof(builds[0])))

struct work {
	struct pair p;
	struct unwind_mutant m;
	struct unwinder_image good;
	uint64_t random;
	uint32_t first_copy; /* index of the first FDE of a copy */
};

static uint64_t draw(struct work *w, uint64_t n)
{
	return n ? me_next_random(&w->random) % n : 0;
}

/* Mostly an FDE of a copy, sometimes one of old code. */
static struct mutant_entry *some_fde(struct work *w)
{
	uint32_t from = draw(w, 5) ? w->first_copy : 0;

	for (int i = 0; i < 100; i++) {
		struct mutant_entry *e = &w->m.entries[from + draw(w, w->m.nr - from)];

		if (!e->is_cie)
			return e;
	}
	return &w->m.entries[w->first_copy];
}

/* The CIE of a copy, or any. */
static struct mutant_entry *some_cie(struct work *w)
{
	return &w->m.entries[some_fde(w)->cie];
}

static struct mutant_entry *some_program(struct work *w)
{
	return draw(w, 5) ? some_fde(w) : some_cie(w);
}

/* A random border between steps of @e, from its beginning to its end. */
static uint32_t some_border(struct work *w, const struct mutant_entry *e)
{
	uint32_t nr = 0, at = 0, stop, step;

	for (at = 0; at < e->len; at += step, nr++) {
		step = unwind_step_size(e->program + at, e->len - at);
		if (!step)
			return 0;
	}
	stop = (uint32_t)draw(w, nr + 1);
	for (at = 0; stop; stop--)
		at += unwind_step_size(e->program + at, e->len - at);
	return at;
}

/* Puts @len bytes of @with in place of @old bytes at @at. */
static void splice(struct work *w, struct mutant_entry *e, uint32_t at, uint32_t old,
		   const uint8_t *with, uint32_t len)
{
	uint8_t *p = unwind_mutant_alloc(&w->m, e->len - old + len + 1);

	memcpy(p, e->program, at);
	memcpy(p + at, with, len);
	memcpy(p + at + len, e->program + at + old, e->len - at - old);
	e->program = p;
	e->len = e->len - old + len;
}

/* ---- steps --------------------------------------------------------------------------------- */

static uint8_t *put_number(struct work *w, uint8_t *p)
{
	static const uint8_t forms[][3] = {{0}, {1}, {2}, {16}, {0x7f}, {0x80, 0x01}, {0x82, 0x00}};
	uint64_t which = draw(w, 12);

	if (which >= 7) {
		*p++ = (uint8_t)draw(w, 64);
		return p;
	}
	*p++ = forms[which][0];
	if (which >= 5)
		*p++ = forms[which][1];
	return p;
}

static uint8_t *put_register(struct work *w, uint8_t *p)
{
	static const uint8_t regs[] = {0, 3, 6, 7, 12, 13, 14, 15, 16, 17, 25, 32, 33, 40, 127};

	*p++ = regs[draw(w, sizeof(regs))];
	return p;
}

static uint8_t *put_expr(struct work *w, uint8_t *p)
{
	*p++ = 2;
	*p++ = 0x70 + (uint8_t)draw(w, 17);
	*p++ = (uint8_t)draw(w, 128);
	return p;
}

/* Any step: all of DWARF's and GNU's, and some that do not exist. */
static uint32_t make_step(struct work *w, uint8_t *p)
{
	static const uint8_t ops[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
				      0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
				      0x12, 0x13, 0x14, 0x15, 0x16, 0x2d, 0x2e, 0x2f, 0x40,
				      0x80, 0xc0, 0x40, 0x80, 0xc0, 0x17, 0x3f};
	uint8_t op = ops[draw(w, sizeof(ops))], *start = p;

	*p++ = op;
	switch (op) {
	case 0x40:
	case 0xc0: p[-1] |= (uint8_t)draw(w, 34); break;
	case 0x80: p[-1] |= (uint8_t)draw(w, 34); /* fall through */
	case 0x0e:
	case 0x13:
	case 0x2e: p = put_number(w, p); break;
	case 0x02: p = put_number(w, p); break;
	case 0x03: *p++ = (uint8_t)draw(w, 4), *p++ = 0; break;
	case 0x01:
	case 0x04: *p++ = (uint8_t)draw(w, 4), *p++ = 0, *p++ = 0, *p++ = 0; break;
	case 0x06 ... 0x08:
	case 0x0d: p = put_register(w, p); break;
	case 0x05:
	case 0x0c:
	case 0x11:
	case 0x12:
	case 0x14:
	case 0x15:
	case 0x2f: p = put_number(w, put_register(w, p)); break;
	case 0x09: p = put_register(w, put_register(w, p)); break;
	case 0x10:
	case 0x16: p = put_register(w, p); /* fall through */
	case 0x0f: p = put_expr(w, p); break;
	default: break;
	}
	return (uint32_t)(p - start);
}

static void insert_step(struct work *w)
{
	struct mutant_entry *e = some_program(w);
	uint8_t step[16];
	uint32_t at = some_border(w, e), len = make_step(w, step);

	splice(w, e, at, 0, step, len);
}

/* A step and, later in the same program, what takes it back. */
static void insert_pair(struct work *w)
{
	static const uint8_t pairs[][2][4] = {
		{{1, 0x0a}, {1, 0x0b}},
		{{2, 0x08, 3}, {2, 0x06, 3}},
		{{2, 0x07, 3}, {1, 0xc3}},
		{{2, 0x83, 2}, {1, 0xc3}},
		{{2, 0x2e, 16}, {2, 0x2e, 0}},
		{{2, 0x07, 16}, {1, 0xd0}},
		{{2, 0x07, 16}, {2, 0x90, 1}},
		{{2, 0x08, 6}, {1, 0xc6}},
		{{1, 0x41}, {1, 0x41}},
		{{2, 0x08, 7}, {1, 0xc7}},
		{{3, 0x05, 12, 2}, {2, 0x06, 12}},
		{{2, 0x91, 3}, {1, 0xd1}},
	};
	const uint8_t(*pair)[4] = pairs[draw(w, sizeof(pairs) / sizeof(pairs[0]))];
	struct mutant_entry *e = some_fde(w);
	uint32_t a = some_border(w, e), b = some_border(w, e);

	splice(w, e, a > b ? a : b, 0, &pair[1][1], pair[1][0]);
	splice(w, e, a > b ? b : a, 0, &pair[0][1], pair[0][0]);
}

static void remove_step(struct work *w)
{
	struct mutant_entry *e = some_program(w);
	uint32_t at = some_border(w, e);

	splice(w, e, at, unwind_step_size(e->program + at, e->len - at), NULL, 0);
}

static void exchange_steps(struct work *w)
{
	struct mutant_entry *e = some_program(w);
	uint32_t at = some_border(w, e), a, b;
	uint8_t steps[300];

	if (at == e->len)
		return;
	a = unwind_step_size(e->program + at, e->len - at);
	b = unwind_step_size(e->program + at + a, e->len - at - a);
	if (!a || !b || a + b > sizeof(steps))
		return;
	memcpy(steps, e->program + at + a, b);
	memcpy(steps + b, e->program + at, a);
	splice(w, e, at, a + b, steps, a + b);
}

static void change_byte(struct work *w)
{
	struct mutant_entry *e = some_program(w);
	uint32_t at = (uint32_t)draw(w, e->len);
	uint8_t byte;

	if (!e->len)
		return;
	byte = draw(w, 2) ? (uint8_t)draw(w, 256) : e->program[at] ^ (uint8_t)(1u << draw(w, 8));
	splice(w, e, at, 1, &byte, 1);
}

/* The same meaning, in another form: what verify accepts is a matter of form alone. */
static void rewrite_step(struct work *w)
{
	struct mutant_entry *e = some_program(w);
	uint32_t at = some_border(w, e), size;
	const uint8_t *p = e->program + at;
	uint8_t to[8];

	if (at == e->len)
		return;
	size = unwind_step_size(p, e->len - at);
	if ((p[0] & 0xc0) == 0x80 && size == 2) {
		memcpy(to, (uint8_t[]){draw(w, 2) ? 0x05 : 0x11, p[0] & 0x3f, p[1]}, 3);
		splice(w, e, at, size, to, 3);
	} else if ((p[0] & 0xc0) == 0xc0) {
		memcpy(to, (uint8_t[]){(uint8_t[]){0x06, 0x08, 0x07}[draw(w, 3)], p[0] & 0x3f}, 2);
		splice(w, e, at, size, to, 2);
	} else if ((p[0] & 0xc0) == 0x40) {
		memcpy(to, (uint8_t[]){0x02, p[0] & 0x3f, 0}, 3);
		splice(w, e, at, size, to, 2);
	} else if (p[0] == 0x0e && size == 2) {
		memcpy(to, (uint8_t[]){0x0e, p[1] | 0x80, 0, 0x13, -p[1] / 8 & 0x7f}, 5);
		splice(w, e, at, size, draw(w, 2) ? to : to + 3, draw(w, 2) ? 3 : 2);
	} else if (p[0] == 0x0d && size == 2) {
		memcpy(to, (uint8_t[]){0x0c, p[1], 16}, 3);
		splice(w, e, at, size, to, 3);
	}
}

/* ---- entries ------------------------------------------------------------------------------- */

static void change_cie(struct work *w)
{
	static const char *const letters[] = {"zR",    "zPLR",	"zPR",	 "zLR",	 "zRS",
					      "zSR",   "zRB",	"zBR",	 "zLPR", "zRPL",
					      "zPLRS", "zPLRR", "",	 "eh",	 "zRX",
					      "R",     "zPLRB", "zRPLS", "zGR"};
	static const uint8_t encodings[] = {0x00, 0x03, 0x04, 0x0b, 0x0c, 0x10, 0x1b, 0x1c, 0x2b,
					    0x3b, 0x4b, 0x50, 0x9b, 0x8b, 0x80, 0xff, 0x01, 0x1a};
	struct mutant_entry *e = some_cie(w);

	switch (draw(w, 10)) {
	case 0: e->version = (uint8_t)draw(w, 6); break;
	case 1: strcpy(e->letters, letters[draw(w, sizeof(letters) / sizeof(letters[0]))]); break;
	case 2: e->code_align = draw(w, 4); break;
	case 3: e->data_align = (int64_t)draw(w, 20) - 12; break;
	case 4: e->ra = draw(w, 20); break;
	case 5: e->fde_enc = encodings[draw(w, sizeof(encodings))]; break;
	case 6: e->lsda_enc = encodings[draw(w, sizeof(encodings))]; break;
	case 7: e->personality_enc = encodings[draw(w, sizeof(encodings))]; break;
	case 8: e->personality += draw(w, 3) * 8 - 8; break;
	default: e->personality = draw(w, 2) ? 0 : some_fde(w)->start;
	}
}

/* Another CIE, with one more step, for some copies: with its inverse in them, or without. */
static void clone_cie(struct work *w)
{
	uint32_t from = some_fde(w)->cie, at = from + 1;
	struct mutant_entry cie = w->m.entries[from];
	uint8_t step[16];
	uint32_t len = make_step(w, step);

	unwind_mutant_insert(&w->m, at, cie);
	splice(w, &w->m.entries[at], draw(w, 2) ? cie.len : some_border(w, &cie), 0, step, len);
	for (uint32_t i = at + 1; i < w->m.nr; i++)
		if (!w->m.entries[i].is_cie && w->m.entries[i].cie == from && draw(w, 2))
			w->m.entries[i].cie = at;
}

static void exchange_entries(struct work *w)
{
	struct mutant_entry *a = some_fde(w), *b = some_fde(w), was = *a;

	*a = *b;
	*b = was;
	if (draw(w, 2)) { /* exchange a part only */
		uint8_t *program = a->program;
		uint32_t len = a->len;

		a->program = b->program, a->len = b->len;
		b->program = program, b->len = len;
	}
}

static void change_fde(struct work *w)
{
	struct mutant_entry *e = some_fde(w), *other = some_fde(w), added;
	int64_t by = (int64_t)draw(w, 33) - 16;
	uint32_t at = (uint32_t)(e - w->m.entries);

	switch (draw(w, 9)) {
	case 0: e->start += (uint64_t)by; break;
	case 1: e->size += (uint64_t)by; break;
	case 2:
		e->start += (uint64_t)by;
		e->size -= (uint64_t)by;
		break;
	case 3: e->cie = other->cie; break;
	case 4: e->lsda = draw(w, 2) ? other->lsda : 0; break;
	case 5: e->lsda += (uint64_t)by; break;
	case 6: e->size = draw(w, 2) ? 0 : e->size / 2; break;
	case 7: e->start = draw(w, 2) ? 0 : other->start; break;
	default: /* one more, of code that has none, or of the same */
		added = *e;
		added.start = draw(w, 2)   ? added.start + added.size
			      : draw(w, 2) ? 0x1000
					   : added.start;
		added.size = draw(w, 3) ? draw(w, 64) : 0;
		unwind_mutant_insert(&w->m, draw(w, 2) ? at + 1 : w->m.nr, added);
	}
}

static void divide_fde(struct work *w)
{
	struct mutant_entry *e = some_fde(w), second = *e;
	uint64_t first = draw(w, e->size);

	e->size = first;
	second.start += first;
	second.size -= first;
	unwind_mutant_insert(&w->m, (uint32_t)(e - w->m.entries) + 1, second);
}

static void change_padding(struct work *w)
{
	struct mutant_entry *e = some_program(w);
	uint8_t junk[64];

	if (draw(w, 2)) {
		e->padding = (uint32_t)draw(w, 12);
		return;
	}
	/* Bytes that no row uses: behind the end of the code, or in an expression that another step replaces */
	junk[0] = 0x04;
	memcpy(junk + 1, &(uint32_t){0x10000000}, 4);
	if (draw(w, 2))
		junk[0] = 0x40 | 0x3f, memset(junk + 1, 0x7f, 4);
	junk[5] = 0x16, junk[6] = 0, junk[7] = 48;
	memset(junk + 8, 0xcc, 48);
	if (draw(w, 2))
		splice(w, e, e->len, 0, junk, 56);
	else
		splice(w, e, some_border(w, e), 0, junk + 5, 51);
}

/* ---- tables -------------------------------------------------------------------------------- */

static void damage_table(uint8_t *table, uint32_t nr, uint64_t how)
{
	uint64_t which = how % 6, at = (how >> 8) % (nr ? nr : 1);
	uint8_t line[8];

	switch (which) {
	case 0: table[(how >> 8) % 8] ^= (uint8_t)(1u << (how >> 40) % 8); break;
	case 1: table[4] = (uint8_t)(table[4] - 1); break;
	case 2: table[8 + 8 * at + (how >> 36) % 8] ^= (uint8_t)(1u << (how >> 40) % 8); break;
	case 3: memset(table, 0, 4); break;
	default:
		if (at + 1 < nr) {
			memcpy(line, table + 8 + 8 * at, 8);
			memmove(table + 8 + 8 * at, table + 16 + 8 * at, which == 4 ? 8 : 4);
			memcpy(table + 16 + 8 * at, line, which == 4 ? 8 : 4);
		}
	}
}

static void change_table(struct work *w)
{
	if (!draw(w, 3)) {
		w->m.hdr[draw(w, 4)] =
			(uint8_t[]){0x1b, 0x3b, 0x00, 0x0b, 0xff, 0x03, 0x04, 0x02}[draw(w, 8)];
		return;
	}
	w->m.change_table = damage_table;
	w->m.table_how = me_next_random(&w->random);
}

/* ---- exception tables, in place ------------------------------------------------------------ */

static bool change_lsda(struct work *w)
{
	const struct mp_section *sec = mp_elf_section(w->p.good, ".gcc_except_table.morph");
	uint8_t *p;
	uint64_t at;

	if (!sec || !sec->size)
		return false;
	p = w->m.bytes + sec->off;
	at = draw(w, sec->size);
	switch (draw(w, 4)) {
	case 0: p[at] ^= (uint8_t)(1u << draw(w, 8)); break;
	case 1:
		p[at] = (uint8_t[]){0, 1, 0x7f, 0x80, 0xff, 0x0b, 0x1b, 0x4b, 0x9b}[draw(w, 9)];
		break;
	case 2: p[at] = (uint8_t)(p[at] + (draw(w, 2) ? 1 : -1)); break;
	default: /* a neighbour's byte */ p[at] = p[draw(w, sec->size)];
	}
	return true;
}

/* Fields of a table: its header, and one number more or less, where the bytes leave room. */
static bool change_lsda_header(struct work *w)
{
	static const uint8_t encodings[] = {0x00, 0x03, 0x04, 0x0b, 0x0c, 0x10, 0x1b, 0x2b,
					    0x3b, 0x4b, 0x50, 0x9b, 0x8b, 0xff, 0x01};
	struct mutant_entry *e = some_fde(w);
	uint64_t off, at;
	int32_t base;
	uint8_t *p;

	for (int i = 0; i < 50 && (!e->lsda || e->start < w->m.copies); i++)
		e = some_fde(w);
	if (!e->lsda || e->start < w->m.copies || !mp_elf_vaddr_to_off(w->p.good, e->lsda, &off))
		return false;
	p = w->m.bytes + off;
	at = p[0] == 0xff ? 1 : 5;
	memcpy(&base, p + 1, sizeof(base));
	switch (draw(w, 4)) {
	case 0: p[0] = encodings[draw(w, sizeof(encodings))]; break;
	case 1: p[at] = encodings[draw(w, sizeof(encodings))]; break;
	case 2: /* absolute, with the same target; or a little off */
		if (at == 5 && draw(w, 2)) {
			base += (int32_t)(e->lsda + 1);
			p[0] = 0x0b;
		} else {
			base += (int32_t)draw(w, 5) - 2;
		}
		memcpy(p + 1, &base, sizeof(base));
		break;
	default: p[at + (p[at] == 0xff ? 1 : 2)] = encodings[draw(w, sizeof(encodings))];
	}
	return true;
}

/* ---- kinds --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*change)(struct work *w);
	bool (*in_place)(struct work *w);
	unsigned int weight;
} kinds[] = {
	{"step inserted", insert_step, NULL, 8},
	{"step inserted and taken back", insert_pair, NULL, 4},
	{"step removed", remove_step, NULL, 2},
	{"steps exchanged", exchange_steps, NULL, 2},
	{"byte of a program", change_byte, NULL, 4},
	{"step in another form", rewrite_step, NULL, 2},
	{"field of a CIE", change_cie, NULL, 3},
	{"another CIE", clone_cie, NULL, 3},
	{"FDEs exchanged", exchange_entries, NULL, 1},
	{"field of an FDE", change_fde, NULL, 3},
	{"FDE divided", divide_fde, NULL, 1},
	{"bytes of no meaning", change_padding, NULL, 2},
	{"search table", change_table, NULL, 2},
	{"byte of an exception table", NULL, change_lsda, 4},
	{"field of an exception table", NULL, change_lsda_header, 2},
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct outcome {
	uint32_t nr_tried, nr_refused, nr_same, nr_other;
};

static size_t first_difference(const struct work *w)
{
	size_t at = 0;

	while (at < w->p.size && at < w->m.size && w->m.bytes[at] == w->p.good->data[at])
		at++;
	return at;
}

/* Verifies the changed output, @w->m.bytes, and, if it is accepted, looks what it means. */
static void judge(struct work *w, const struct build *build, const char *kind, struct outcome *o)
{
	struct unwinder_image image;
	struct mp_err err = {""};
	struct mp_elf *elf;
	bool other = true;
	int rc;

	if (w->m.size == w->p.size && !memcmp(w->m.bytes, w->p.good->data, w->p.size))
		return;
	o->nr_tried++;
	if (mp_elf_open_memory("changed", w->m.bytes, w->m.size, MP_ELF_ALL, &elf, &err)) {
		o->nr_refused++;
		return;
	}
	rc = me_verify(w->p.original, elf, NULL, &err);
	ck_assert_msg(rc == 0 || rc == -EBADMSG, "%s: %s: %d", build->command, kind, rc);
	o->nr_refused += rc != 0;
	if (!rc) {
		if (unwinder_image_init(&image, elf)) {
			other = unwinders_differ(&w->good, &image, true);
			unwinder_image_fini(&image);
		}
		printf("accepted, with %s meaning: %s: %s, from byte %#zx on\n",
		       other ? "ANOTHER" : "the same", build->command, kind, first_difference(w));
		o->nr_same += !other;
		o->nr_other += other;
	}
	mp_elf_close(elf);
}

static uint32_t changes_of(const struct pair *p)
{
	const char *is_long = getenv("MORPH_LONG");
	bool large = p->size > 1 << 20; /* a static program's verify takes 30 times as long */

	if (is_long && !strcmp(is_long, "1"))
		return large ? 40 : 400;
	return large ? 2 : 24;
}

static void setup(struct work *w, const struct build *build)
{
	const char *seed = getenv("SEED");

	memset(w, 0, sizeof(*w));
	pair_make(&w->p, build->command, build->seed, build->kind);
	ck_assert(unwinder_image_init(&w->good, w->p.good));
	ck_assert(unwind_mutant_init(&w->m, w->p.good));
	while (w->first_copy + 1 < w->m.nr && (w->m.entries[w->first_copy].is_cie ||
					       w->m.entries[w->first_copy].start < w->m.copies))
		w->first_copy++;
	ck_assert(unwind_mutant_finish(&w->m));
	ck_assert_uint_eq(w->m.size, w->p.size);
	ck_assert_msg(!memcmp(w->m.bytes, w->p.good->data, w->p.size), "%s: another output",
		      build->command);
	w->random = (seed ? strtoull(seed, NULL, 10) : 0) + (uint64_t)(build - builds) * 7919;
}

static void teardown(struct work *w)
{
	unwind_mutant_fini(&w->m);
	unwinder_image_fini(&w->good);
	pair_free(&w->p);
}

/* First, the good output itself: the unwinders find at its copies what they find in the original. */
static void check_good(const struct work *w)
{
	struct unwinders_report report;
	struct unwinder_image original;

	ck_assert(unwinder_image_init(&original, w->p.original));
	ck_assert(unwinders_check(&original, &w->good, w->p.map, &report));
	ck_assert_uint_gt(report.nr_insns, 50);
	unwinder_image_fini(&original);
}

TIMEOUT(3600);

TEST_EACH(verify_passes_no_other_unwind_information, NR_BUILDS)
{
	const struct build *build = &builds[_i];
	struct outcome all = {0};
	struct work w;

	if (build->needs && access(build->needs, X_OK))
		MORPH_SKIP("%s is not there", build->needs);
	setup(&w, build);
	check_good(&w);
	for (size_t k = 0; k < NR_KINDS; k++) {
		uint32_t nr = changes_of(&w.p) * kinds[k].weight / 2;
		struct outcome o = {0};

		for (uint32_t i = 0; i < nr + 1; i++) {
			unwind_mutant_reset(&w.m);
			if (kinds[k].change) {
				kinds[k].change(&w);
				if (!unwind_mutant_finish(&w.m))
					continue;
			} else {
				memcpy(w.m.bytes, w.p.good->data, w.p.size);
				w.m.size = w.p.size;
				if (!kinds[k].in_place(&w))
					continue;
			}
			judge(&w, build, kinds[k].name, &o);
		}
		printf("%-32s %5u tried %5u refused %3u same %3u other\n", kinds[k].name,
		       o.nr_tried, o.nr_refused, o.nr_same, o.nr_other);
		all.nr_tried += o.nr_tried;
		all.nr_refused += o.nr_refused;
		all.nr_same += o.nr_same;
		all.nr_other += o.nr_other;
	}
	printf("all: %u tried, %u refused, %u same, %u other: %s\n", all.nr_tried, all.nr_refused,
	       all.nr_same, all.nr_other, build->command);
	fflush(stdout);
	ck_assert_uint_eq(all.nr_other, 0);
	ck_assert_uint_gt(all.nr_refused, all.nr_tried / 2);
	teardown(&w);
}

/* ---- outputs that a maker with bad intentions thought out ------------------------------------ */

/*
 * The CIE saves @reg, the FDE does not, and then `restore` stands where it was saved. libgcc takes that for "not
 * saved", other unwinders for the CIE's rule.
 */
static void forget_register(struct work *w, uint8_t reg)
{
	uint32_t nr = w->m.nr;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t cie = w->m.entries[i].cie, at = 0, step;
		struct mutant_entry added = w->m.entries[cie];
		uint8_t offset = 0;

		if (w->m.entries[i].is_cie || w->m.entries[i].start < w->m.copies)
			continue;
		for (; at < w->m.entries[i].len; at += step) {
			const uint8_t *p = w->m.entries[i].program + at;

			step = unwind_step_size(p, w->m.entries[i].len - at);
			if (p[0] == (0x80 | reg) && step == 2)
				offset = p[1];
			if (p[0] == (0x80 | reg))
				splice(w, &w->m.entries[i], at, step, (uint8_t[]){0xc0 | reg}, 1);
			else if (p[0] == (0xc0 | reg))
				splice(w, &w->m.entries[i], at, step, (uint8_t[]){0x08, reg}, 2);
			step = unwind_step_size(w->m.entries[i].program + at,
						w->m.entries[i].len - at);
		}
		if (!offset)
			continue;
		splice(w, &w->m.entries[i], 0, 0, (uint8_t[]){0x08, reg}, 2);
		unwind_mutant_insert(&w->m, cie + 1, added);
		splice(w, &w->m.entries[cie + 1], added.len, 0, (uint8_t[]){0x80 | reg, offset}, 2);
		w->m.entries[i + 1].cie = cie + 1;
		i++, nr++;
	}
}

static void forget_rbx(struct work *w)
{
	forget_register(w, 3);
}

static void forget_rbp(struct work *w)
{
	forget_register(w, 6);
}

static void each_copy(struct work *w, const uint8_t *with, uint32_t len)
{
	for (uint32_t i = 0; i < w->m.nr; i++)
		if (!w->m.entries[i].is_cie && w->m.entries[i].start >= w->m.copies)
			splice(w, &w->m.entries[i], 0, 0, with, len);
}

static void end_the_stack(struct work *w)
{
	each_copy(w, (uint8_t[]){0x07, 16, 0xd0}, 3);
}

/* Copies get CIEs that remember a state, which the FDEs restore. */
static void cross_the_border(struct work *w)
{
	for (uint32_t c = w->m.nr; c-- > 0;) {
		struct mutant_entry added = w->m.entries[c];

		if (!added.is_cie)
			continue;
		unwind_mutant_insert(&w->m, c + 1, added);
		splice(w, &w->m.entries[c + 1], added.len, 0, (uint8_t[]){0x0a, 0x0c, 7, 16}, 4);
		for (uint32_t i = c + 2; i < w->m.nr; i++)
			if (!w->m.entries[i].is_cie && w->m.entries[i].cie == c &&
			    w->m.entries[i].start >= w->m.copies) {
				w->m.entries[i].cie = c + 1;
				splice(w, &w->m.entries[i], 0, 0, (uint8_t[]){0x0b}, 1);
			}
	}
}

static void make_lsdas_absolute(struct work *w)
{
	for (uint32_t i = 0; i < w->m.nr; i++)
		if (w->m.entries[i].lsda_enc == 0x1b)
			w->m.entries[i].lsda_enc = 0x0b;
}

static void make_personalities_absolute(struct work *w)
{
	for (uint32_t i = 0; i < w->m.nr; i++)
		if (w->m.entries[i].is_cie && w->m.entries[i].personality_enc != 0xff)
			w->m.entries[i].personality_enc ^= 0x10;
}

static void add_letter(struct work *w)
{
	for (uint32_t i = 0; i < w->m.nr; i++) {
		struct mutant_entry *e = &w->m.entries[i];

		if (!e->is_cie)
			continue;
		memmove(e->letters + 2, e->letters + 1, strlen(e->letters));
		e->letters[1] = 'B';
	}
}

static void hide_in_fde(struct work *w)
{
	struct mutant_entry e = w->m.entries[w->first_copy];
	static uint8_t junk[16385];

	e.program = memset(junk, 0xcc, sizeof(junk));
	e.len = sizeof(junk);
	e.start = 0x1000;
	e.size = 0;
	unwind_mutant_insert(&w->m, w->m.nr, e);
}

static void hide_in_cie(struct work *w)
{
	struct mutant_entry e = w->m.entries[0];
	static uint8_t junk[16385];

	e.program = memset(junk, 0xcc, sizeof(junk));
	e.len = sizeof(junk);
	unwind_mutant_insert(&w->m, w->m.nr, e);
}

static const struct {
	void (*make)(struct work *w);
	const char *word; /* of the refusal */
} thought_out[] = {
	{forget_rbx, "CIE"},
	{forget_rbp, "CIE"},
	{end_the_stack, "copy is unreadable"},
	{cross_the_border, "CIE"},
	{make_lsdas_absolute, "CIE not understood"},
	{make_personalities_absolute, "CIE not understood"},
	{add_letter, "CIE not understood"},
	{hide_in_fde, "covers nothing"},
	{hide_in_cie, "CIE"},
};

/* The base of landing pads has the same address, but nothing moves it with the file. */
static void check_absolute_base(struct work *w)
{
	struct mp_err err = {""};
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->m.nr_pristine; i++) {
		const struct mutant_entry *e = &w->m.pristine[i];
		uint8_t *p = e->lsda && e->start >= w->m.copies ? pair_at(&w->p, e->lsda) : NULL;
		int32_t base;

		if (!p || p[0] != 0x1b)
			continue;
		memcpy(&base, p + 1, sizeof(base));
		base += (int32_t)e->lsda + 1;
		p[0] = 0x0b;
		memcpy(p + 1, &base, sizeof(base));
		nr++;
	}
	ck_assert_uint_gt(nr, 1);
	ck_assert_int_eq(pair_verify(&w->p, w->p.size, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "the landing pad base has a form"), "%s", err.msg);
}

TEST(verify_refuses_thought_out_unwind_information)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	struct work w;

	setup(&w, &builds[1]);
	for (size_t i = 0; i < sizeof(thought_out) / sizeof(thought_out[0]); i++) {
		unwind_mutant_reset(&w.m);
		thought_out[i].make(&w);
		ck_assert(unwind_mutant_finish(&w.m));
		ck_assert_int_eq(mp_elf_open_memory("changed", w.m.bytes, w.m.size, MP_ELF_ALL,
						    &elf, &err),
				 0);
		ck_assert_int_eq(me_verify(w.p.original, elf, NULL, &err), -EBADMSG);
		ck_assert_msg(strstr(err.msg, thought_out[i].word) != NULL, "%zu: %s", i, err.msg);
		mp_elf_close(elf);
	}
	check_absolute_base(&w);
	teardown(&w);
}
