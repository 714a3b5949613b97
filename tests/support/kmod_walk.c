// SPDX-License-Identifier: Apache-2.0
/* kmod_walk - the environment of the kernel module's walker; see kmod_walk.h. */
#include "tests/support/kmod_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

static const struct mp_walk_ops *operations;

static bool get_word(u64 address, u64 *word)
{
	return operations->read(operations->arg, address, word);
}

#define MORPH_USER_END		    0x7ffffffff000ULL
#define morph_user_address(address) (address)
#define morph_user_begin()                                                                         \
	do {                                                                                       \
	} while (0)
#define morph_user_end()                                                                           \
	do {                                                                                       \
	} while (0)
#define morph_user_get(word, address, label)                                                       \
	do {                                                                                       \
		if (!get_word(address, &(word)))                                                   \
			goto label;                                                                \
	} while (0)

#include "kmod/rows.c"
#include "kmod/walk.c"

_Static_assert(sizeof(struct morph_last) == 4096, "one page for each thread");

#define TABLES_MAX 64

struct table {
	const void *bytes;
	struct morph_rows_table rows;
	u32 *index;
};

struct morph_codes {
	struct table tables[TABLES_MAX];
	u32 nr;
	struct morph_code code;
};

struct kmod_walk {
	struct morph_last last;
	struct morph_walk walk;
	struct morph_codes codes;
	bool has_changed;
};

static int add_table(struct table *table, const void *bytes, size_t size)
{
	int ret = morph_rows_check(bytes, size, &table->rows);

	if (ret)
		return ret;
	table->bytes = bytes;
	table->index = malloc(morph_rows_index_size(&table->rows));
	if (!table->index)
		return -ENOMEM;
	morph_rows_make_index(&table->rows, table->index);
	return 0;
}

static const struct morph_rows_table *table_of(struct morph_codes *codes,
					       const struct mp_rows *rows)
{
	const void *bytes = (const struct mp_rows_head *)rows->rules - 1;
	u32 i;

	for (i = 0; i < codes->nr; i++)
		if (codes->tables[i].bytes == bytes)
			return &codes->tables[i].rows;
	/* Rows that the reference accepted must be sound here, too. */
	if (codes->nr == TABLES_MAX ||
	    add_table(&codes->tables[codes->nr], bytes,
		      mp_rows_size(rows->nr_rules, rows->nr_rows, rows->nr_pages)))
		abort();
	return &codes->tables[codes->nr++].rows;
}

const struct morph_code *morph_code_find(struct morph_codes *codes, u64 ip)
{
	const struct mp_rows *rows = NULL;
	enum mp_walk_code kind;
	u64 vaddr = 0;

	kind = operations->find(operations->arg, ip, &rows, &vaddr);
	if (kind == MP_WALK_NOTHING)
		return NULL;
	/* One byte: each address is looked up. */
	codes->code = (struct morph_code){.start = ip, .size = 1, .kind = MORPH_CODE_BARE};
	if (kind == MP_WALK_ROWS) {
		codes->code.bias = vaddr - ip;
		codes->code.rows = table_of(codes, rows);
		codes->code.kind = MORPH_CODE_ROWS;
	}
	return &codes->code;
}

struct kmod_walk *kmod_walk_new(void)
{
	return calloc(1, sizeof(struct kmod_walk));
}

void kmod_walk_forget_rows(struct kmod_walk *walk)
{
	while (walk->codes.nr)
		free(walk->codes.tables[--walk->codes.nr].index);
	kmod_walk_change_code(walk);
}

void kmod_walk_free(struct kmod_walk *walk)
{
	if (walk)
		kmod_walk_forget_rows(walk);
	free(walk);
}

void kmod_walk_change_code(struct kmod_walk *walk)
{
	walk->has_changed = true;
}

void kmod_walk_run(struct kmod_walk *walk, const struct mp_walk_ops *ops,
		   const struct mp_walk_start *start, uint32_t max, struct kmod_walk_result *out)
{
	struct morph_walk *w = &walk->walk;
	u64 regs[MORPH_NR_PT_REGS] = {0};

	for (u32 i = 0; i < MORPH_NR_REGS; i++)
		regs[places[i]] = start->regs[i];
	regs[PLACE_IP] = start->ip;
	operations = ops;
	/* Garbage from an earlier walk must not change this walk. */
	memset(w, 0xa5, sizeof(*w));
	w->regs = regs;
	w->codes = &walk->codes;
	w->last = &walk->last;
	w->is_same_code = !walk->has_changed;
	w->ips = out->ips;
	w->max = max;
	out->stop = morph_walk(w);
	out->nr = w->nr;
	out->nr_old = w->nr_old;
	out->nr_read = w->nr_read;
	out->is_aged = w->is_aged;
	walk->has_changed = false;
}

int kmod_rows_check(const void *bytes, size_t size)
{
	struct morph_rows_table rows;

	return morph_rows_check(bytes, size, &rows);
}

void kmod_rows_try(const void *bytes, size_t size)
{
	struct table table;
	u64 page, row;

	if (add_table(&table, bytes, size))
		return;
	for (page = 0; page < table.rows.nr_pages; page++)
		for (row = table.rows.pages[page]; row < table.rows.pages[page + 1]; row++)
			for (u64 off = 0; off < 2; off++)
				morph_rows_find(&table.rows,
						table.rows.base + page * MORPH_ROWS_PAGE +
							table.rows.rows[row].low - off);
	free(table.index);
}

const void *kmod_rows_find(const void *bytes, size_t size, uint64_t vaddr)
{
	static struct table table;
	const void *rule;

	if (add_table(&table, bytes, size))
		abort();
	rule = morph_rows_find(&table.rows, vaddr);
	free(table.index);
	return rule;
}
