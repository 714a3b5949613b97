// SPDX-License-Identifier: Apache-2.0
/*
 * rows_compile - lists the FDEs, runs their programs, and merges the rows; see rows_compile.h.
 *
 * Of FDEs that overlap, the one that starts last holds up to its end, as for the search table
 * that unwinders use. A row stands at the end of each FDE unless another FDE begins there.
 */
#include "libprof/unwind/rows_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/unwind/row_rule_private.h"
#include "libprof/unwind/rows.h"
#include "libprof/unwind/rows_laid.h"

#define FDES_MAX (1u << 21)
/* Compilers need some 20 bytes. The program runs again for each FDE, so it must be short. */
#define CIE_PROGRAM_MAX 1024
#define START_MAX	128 /* bytes of code at the start that no FDE covers */
#define RULE_BOTTOM	0
#define KEYS_START	1024u /* slots of the table of keys; a power of two */

struct frame {
	uint64_t start, size, program_vaddr;
	const uint8_t *program;
	uint32_t program_size, cie; /* @cie: index */
};

/* The rule number of a combination of call-frame rules. */
struct key {
	uint64_t bits; /* 0: free */
	uint32_t number;
};

struct compiler {
	struct frame *frames;
	struct mp_eh_cie *cies;
	uint32_t nr_frames, max_frames, nr_cies, max_cies;
	struct mp_cfi_rules cfi;
	struct mp_cfi_table table;
	struct key *keys;
	uint32_t nr_keys, max_keys;
	struct mp_row_rule *rules;
	uint32_t nr_rules;
	uint32_t *offsets;
	uint16_t *numbers;
	uint32_t nr_rows, max_rows;
	uint64_t base;
	uint64_t start; /* where the kernel enters the file; 0: nowhere */
	const struct mp_code_bytes *code;
};

/* ---- the list of FDEs ----------------------------------------------------------------------- */

static int add_cie(struct compiler *c, const struct mp_eh_cie *cie)
{
	if (c->nr_cies && c->cies[c->nr_cies - 1].vaddr == cie->vaddr)
		return 0;
	return mp_push(c->cies, c->nr_cies, c->max_cies, *cie);
}

static int add_frame(struct compiler *c, const struct mp_eh_cie *cie, const struct mp_eh_fde *fde)
{
	if (c->nr_frames == FDES_MAX)
		return -EFBIG;
	if (mp_grow(c->frames, c->max_frames, c->nr_frames + 1))
		return -ENOMEM;
	if (add_cie(c, cie))
		return -ENOMEM;
	c->frames[c->nr_frames++] = (struct frame){
		.start = fde->start,
		.size = fde->size,
		.program = fde->program,
		.program_vaddr = fde->program_vaddr,
		.program_size = (uint32_t)fde->program_size,
		.cie = c->nr_cies - 1,
	};
	return 0;
}

static int compare_frames(const void *a, const void *b)
{
	const struct frame *fa = a, *fb = b;

	if (fa->start != fb->start)
		return fa->start < fb->start ? -1 : 1;
	return fa->size < fb->size ? -1 : fa->size > fb->size;
}

static int list_frames(struct compiler *c, const struct mp_cursor *first, bool sized,
		       struct mp_err *err)
{
	struct mp_cursor cur = *first;
	struct mp_eh_cie cie = {0};
	struct mp_eh_fde fde;
	bool sorted = true;
	int ret;

	while (cur.p < cur.end) {
		ret = mp_eh_next(&cur, first, &cie, &fde);
		if (ret == 0 && !sized)
			break;
		if (ret == -EBADMSG)
			return mp_err_set(err, EBADMSG, "damaged .eh_frame");
		/* FDEs of code that the linker dropped have size or address 0. */
		if (ret != 2 || !fde.size || !fde.start)
			continue;
		ret = add_frame(c, &cie, &fde);
		if (ret)
			return mp_err_set(err, -ret, "too many FDEs");
		if (c->nr_frames > 1 && fde.start <= c->frames[c->nr_frames - 2].start)
			sorted = false;
	}
	if (!sorted)
		qsort(c->frames, c->nr_frames, sizeof(*c->frames), compare_frames);
	return 0;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static struct key *find_key(struct key *keys, uint32_t max, uint64_t bits)
{
	uint32_t i = (uint32_t)(bits * 0x9e3779b97f4a7c15ull >> 32) & (max - 1);

	while (keys[i].bits && keys[i].bits != bits)
		i = (i + 1) & (max - 1);
	return &keys[i];
}

static int grow_keys(struct compiler *c)
{
	uint32_t max = c->max_keys ? c->max_keys * 2 : KEYS_START;
	struct key *keys = calloc(max, sizeof(*keys));

	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->max_keys; i++)
		if (c->keys[i].bits)
			*find_key(keys, max, c->keys[i].bits) = c->keys[i];
	free(c->keys);
	c->keys = keys;
	c->max_keys = max;
	return 0;
}

/* Return: the number of @rule. If there are too many rules, that of one that stops. */
static uint32_t rule_number(struct compiler *c, const struct mp_row_rule *rule)
{
	for (uint32_t i = 0; i < c->nr_rules; i++)
		if (!memcmp(&c->rules[i], rule, sizeof(*rule)))
			return i;
	if (c->nr_rules == MP_ROWS_RULES_MAX)
		return MP_ROW_STOP_RANGE;
	c->rules[c->nr_rules] = *rule;
	return c->nr_rules++;
}

/* Rule n is "stop for reason n" for each reason, and rule 0 is the bottom. */
static void add_stop_rules(struct compiler *c)
{
	c->rules[c->nr_rules++] = (struct mp_row_rule){.flags = MP_ROW_BOTTOM};
	for (int stop = 1; stop < MP_NR_ROW_STOP; stop++)
		c->rules[c->nr_rules++] = mp_row_rule_stop(stop);
}

/* @entry: a flag if the row begins its FDE, else 0. */
static int row_rule(struct compiler *c, const struct mp_cfi_row *row, bool signal, uint16_t entry,
		    uint32_t *number)
{
	uint64_t bits = (uint64_t)row->cfa | (uint64_t)row->regs[MP_DWARF_RBP] << 16 |
			(uint64_t)row->regs[MP_DWARF_RA] << 32 | (uint64_t)signal << 48 |
			(uint64_t)entry << 49 | /* 4 or 8: bits 51, 52 */
			UINT64_C(1) << 63;
	struct mp_row_rule rule;
	struct key *key;

	if (c->nr_keys * 2 >= c->max_keys && grow_keys(c))
		return -ENOMEM;
	key = find_key(c->keys, c->max_keys, bits);
	if (!key->bits) {
		rule = mp_row_rule_of(&c->cfi, row, signal);
		if (!rule.stop)
			rule.flags |= entry;
		*key = (struct key){bits, rule_number(c, &rule)};
		c->nr_keys++;
	}
	*number = key->number;
	return 0;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int grow_rows(struct compiler *c)
{
	uint32_t max = c->max_rows * 2 + 1024;

	if (mp_resize(c->offsets, max) || mp_resize(c->numbers, max))
		return -ENOMEM;
	c->max_rows = max;
	return 0;
}

/* Adds a row at @vaddr, which is not below that of the last row, or replaces that one. */
static int add_row(struct compiler *c, uint64_t vaddr, uint32_t number)
{
	uint64_t off = vaddr - c->base;

	if (off > UINT32_MAX || c->nr_rows == MP_ROWS_MAX)
		return -EFBIG;
	if (c->nr_rows && c->offsets[c->nr_rows - 1] == off)
		c->nr_rows--;
	if (c->nr_rows && c->numbers[c->nr_rows - 1] == number)
		return 0;
	if (c->nr_rows == c->max_rows && grow_rows(c))
		return -ENOMEM;
	c->offsets[c->nr_rows] = (uint32_t)off;
	c->numbers[c->nr_rows++] = (uint16_t)number;
	return 0;
}

/*
 * Adds the row at @end of an FDE. No FDE begins before @next. The dynamic linker's first
 * instructions lie in such a gap.
 */
static int add_gap(struct compiler *c, uint64_t end, uint64_t next)
{
	int ret = add_row(c, end, MP_ROW_STOP_NO_ROW);

	if (ret || c->start < end || c->start >= next ||
	    c->start - c->base > UINT32_MAX - START_MAX)
		return ret;
	ret = add_row(c, c->start, RULE_BOTTOM);
	if (!ret && next - c->start > START_MAX)
		ret = add_row(c, c->start + START_MAX, MP_ROW_STOP_NO_ROW);
	return ret;
}

/*
 * Sets the number of the first row of a frame. Of the two flags, the usual one is taken: the other one only
 * where the row before would be the same.
 */
static int first_rule(struct compiler *c, const struct mp_cfi_row *row, bool signal, uint64_t start,
		      uint32_t *number)
{
	uint32_t last = c->nr_rows;
	int ret = row_rule(c, row, signal, MP_ROW_ENTRY, number);

	/* A row at the same address will be replaced. */
	if (last && c->base + c->offsets[last - 1] == start)
		last--;
	if (ret || !last || c->numbers[last - 1] != *number)
		return ret;
	return row_rule(c, row, signal, MP_ROW_ENTRY_ODD, number);
}

/*
 * Line @i begins a way to compute the CFA. @code: of the function. Return: from where on that is false, as
 * the code has changed rsp and the program does not say so; @end, an offset: nowhere.
 */
static uint64_t false_from(const struct compiler *c, const uint8_t *code, uint32_t i, uint64_t end)
{
	const struct mp_cfi_line *lines = c->table.lines;
	const struct mp_cfi_rule *cfa = &c->cfi.rules[lines[i].row.cfa];
	uint64_t to = end, found;

	if (!code || cfa->kind != MP_CFI_OFFSET || cfa->reg != MP_DWARF_RSP)
		return end;
	for (uint32_t k = i + 1; k < c->table.nr; k++) {
		if (lines[k].row.cfa != lines[i].row.cfa) {
			to = lines[k].off < end ? lines[k].off : end;
			break;
		}
	}
	found = mp_stack_change(code, end, lines[i].off, to);
	return found == to ? end : found;
}

/* Adds the rows of the table's lines up to @end, an offset in @frame. */
static int add_lines(struct compiler *c, const struct frame *frame, uint64_t end)
{
	const struct mp_cfi_line *lines = c->table.lines;
	const uint8_t *code = c->code ? c->code->bytes(c->code->arg, frame->start, end) : NULL;
	bool signal = c->cies[frame->cie].signal_frame;
	uint64_t is_false = end, next;
	uint32_t number;
	int ret = 0;

	if (code && !mp_stack_may_change(code, end))
		code = NULL;
	for (uint32_t i = 0; !ret && i < c->table.nr && lines[i].off < end; i++) {
		if (!i || lines[i].row.cfa != lines[i - 1].row.cfa)
			is_false = false_from(c, code, i, end);
		if (lines[i].off >= is_false)
			continue; /* @is_false is above the offset where the CFA's rule begins */
		ret = lines[i].off ? row_rule(c, &lines[i].row, signal, 0, &number)
				   : first_rule(c, &lines[i].row, signal, frame->start, &number);
		if (!ret)
			ret = add_row(c, frame->start + lines[i].off, number);
		next = i + 1 < c->table.nr ? lines[i + 1].off : end;
		if (!ret && is_false < next && is_false < end)
			ret = add_row(c, frame->start + is_false, MP_ROW_STOP_STACK);
	}
	return ret;
}

/* Adds the rows of @frame up to @end. */
static int add_frame_rows(struct compiler *c, const struct frame *frame, uint64_t end)
{
	const struct mp_eh_cie *cie = &c->cies[frame->cie];
	const struct mp_eh_fde fde = {
		.start = frame->start,
		.size = frame->size,
		.program = frame->program,
		.program_vaddr = frame->program_vaddr,
		.program_size = frame->program_size,
	};
	int ret = -EOPNOTSUPP;

	if (cie->program_size <= CIE_PROGRAM_MAX)
		ret = mp_cfi_expand(&c->cfi, cie, &fde, &c->table);
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		return add_row(c, frame->start, MP_ROW_STOP_PROGRAM);
	return add_lines(c, frame, end - frame->start);
}

static int add_all_rows(struct compiler *c)
{
	int ret = 0;

	if (c->nr_frames)
		c->base = c->frames[0].start & ~(uint64_t)(MP_ROWS_PAGE - 1);
	if (c->base >= MP_ROWS_BASE_END)
		return -EFBIG;
	for (uint32_t i = 0; i < c->nr_frames && !ret; i++) {
		const struct frame *frame = &c->frames[i];
		uint64_t end = frame->start + frame->size;
		uint64_t next = i + 1 < c->nr_frames ? frame[1].start : UINT64_MAX;

		if (end > next)
			end = next;
		if (next == frame->start || (i && frame[-1].start == frame->start))
			ret = add_row(c, frame->start, MP_ROW_STOP_OVERLAP);
		else
			ret = add_frame_rows(c, frame, end);
		/* Of two FDEs at one address, the longer one comes last. */
		if (!ret && end != next && end > frame->start)
			ret = add_gap(c, end, next);
	}
	return ret;
}

static int write_table(const struct compiler *c, void **bytes, size_t *size)
{
	uint32_t nr_pages = c->nr_rows ? c->offsets[c->nr_rows - 1] / MP_ROWS_PAGE + 1 : 0;
	struct mp_rows_head *head;
	struct mp_row_rule *rules;
	uint32_t *pages, page = 0;
	struct mp_row *rows;

	*size = mp_rows_size(c->nr_rules, c->nr_rows, nr_pages);
	head = calloc(1, *size);
	if (!head)
		return -ENOMEM;
	*head = (struct mp_rows_head){MP_ROWS_MAGIC, c->nr_rules, c->nr_rows, nr_pages, c->base};
	rules = (struct mp_row_rule *)(head + 1);
	memcpy(rules, c->rules, c->nr_rules * sizeof(*rules));
	pages = (uint32_t *)(rules + c->nr_rules);
	rows = (struct mp_row *)(pages + nr_pages + 1);
	for (uint32_t i = 0; i < c->nr_rows; i++) {
		for (; page <= c->offsets[i] / MP_ROWS_PAGE; page++)
			pages[page] = i;
		rows[i] = (struct mp_row){(uint16_t)c->offsets[i], c->numbers[i]};
	}
	pages[nr_pages] = c->nr_rows;
	*bytes = head;
	return 0;
}

static void compiler_fini(struct compiler *c)
{
	mp_cfi_table_fini(&c->table);
	mp_cfi_rules_fini(&c->cfi);
	free(c->frames);
	free(c->cies);
	free(c->keys);
	free(c->rules);
	free(c->offsets);
	free(c->numbers);
}

int mp_rows_compile(const struct mp_cursor *frames, bool sized, uint64_t start,
		    const struct mp_code_bytes *code, void **bytes, size_t *size,
		    struct mp_err *err)
{
	struct compiler c = {0};
	int ret;

	*bytes = NULL;
	*size = 0;
	c.rules = calloc(MP_ROWS_RULES_MAX, sizeof(*c.rules));
	if (!c.rules || mp_cfi_rules_init(&c.cfi)) {
		free(c.rules);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	c.cfi.for_walking = true;
	c.start = start;
	c.code = code;
	add_stop_rules(&c);
	ret = list_frames(&c, frames, sized, err);
	if (!ret) {
		ret = add_all_rows(&c);
		if (!ret)
			ret = write_table(&c, bytes, size);
		if (ret)
			mp_err_set(err, -ret, "unwind rows: %s", strerror(-ret));
	}
	compiler_fini(&c);
	return ret;
}

int mp_rows_make(const struct mp_cursor *frames, bool sized, uint64_t start,
		 const struct mp_code_bytes *code, void **bytes, size_t *size, struct mp_err *err)
{
	struct mp_rows rows;
	void *flat;
	int ret = mp_rows_compile(frames, sized, start, code, &flat, size, err);

	*bytes = NULL;
	if (!ret)
		ret = mp_rows_open("", flat, *size, &rows, err);
	if (!ret) {
		ret = mp_rows_lay(&rows, bytes, size);
		if (ret)
			mp_err_set(err, -ret, "unwind rows: %s", strerror(-ret));
	}
	free(flat);
	return ret;
}
