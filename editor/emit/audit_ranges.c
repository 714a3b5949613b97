// SPDX-License-Identifier: Apache-2.0
/*
 * audit_ranges - joins adjacent copies of one version to ranges. The stubs at entries belong to
 * no version.
 */
#include "editor/emit/audit_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/grow.h"
#include "libprof/note/audit_table.h"

static const uint8_t code_of[ME_NR_VERSIONS] = {
	[ME_VERSION_NEW] = MP_AUDIT_B,
	[ME_VERSION_ORIGINAL] = MP_AUDIT_A,
	[ME_VERSION_ORIGINAL_UNTIMED] = MP_AUDIT_UNTIMED_A,
	[ME_VERSION_NEW_UNTIMED] = MP_AUDIT_UNTIMED_B,
};

/* A range and the number of its function; sorted by both. */
struct numbered {
	uint32_t number;
	struct mp_audited_range range;
};

static int compare(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->range.vaddr < y->range.vaddr ? -1 : x->range.vaddr > y->range.vaddr;
}

static bool is_entry_stub(const struct me_placement *placement, const struct me_copy *copy)
{
	return copy->stub && placement->stubs[copy->stub - 1].does == ME_STUB_ENTERS;
}

/* @number_of: per function of @cfg: its number among the audited; MP_NONE: it is not. */
static uint32_t collect(const struct mp_cfg *cfg, const struct me_placement *placement,
			const uint32_t *number_of, struct numbered *out)
{
	uint32_t nr = 0, last = MP_NONE;

	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];
		uint32_t number = number_of[cfg->blocks[copy->block].func];
		uint8_t version = code_of[copy->version];
		struct numbered *before = nr ? &out[nr - 1] : NULL;

		if (number == MP_NONE || is_entry_stub(placement, copy))
			continue;
		if (before && last + 1 == i && before->number == number &&
		    before->range.version == version)
			before->range.size = copy->new_vaddr + copy->new_size - before->range.vaddr;
		else
			out[nr++] = (struct numbered){number,
						      {copy->new_vaddr, copy->new_size, version}};
		last = i;
	}
	return nr;
}

static void fill(struct mp_audit_table *table, struct numbered *all, uint32_t nr)
{
	qsort(all, nr, sizeof(*all), compare);
	for (uint32_t i = 0; i < nr; i++) {
		struct mp_audited_func *func = &table->funcs[all[i].number];

		if (!all[i].range.size) /* a block that was only a dropped jump */
			continue;
		if (!func->nr_ranges++)
			func->first_range = table->nr_ranges;
		table->ranges[table->nr_ranges++] = all[i].range;
	}
}

/* Points of each function, in the order of their numbers. Return: false: out of memory. */
static bool add_points(const struct mp_cfg *cfg, const struct me_placement *placement,
		       struct mp_audit_table *table)
{
	uint32_t cap = 0;

	for (uint32_t f = 0; f < table->nr_funcs; f++) {
		struct mp_audited_func *func = &table->funcs[f];

		func->first_point = table->nr_points;
		for (uint32_t i = 0; i < placement->nr_copies; i++) {
			const struct me_copy *copy = &placement->copies[i];
			const struct me_stub *stub = copy->stub ? &placement->stubs[copy->stub - 1]
								: NULL;
			uint32_t nr;

			if (!stub || stub->does != ME_STUB_TIMES ||
			    copy->version != ME_VERSION_ORIGINAL || stub->counter != f)
				continue;
			nr = func->first_point + stub->point + 1;
			if (mp_grow(table->points, cap, nr))
				return false;
			table->points[nr - 1] = (struct mp_audited_point){
				cfg->blocks[copy->block].vaddr, (uint32_t)stub->value};
			table->nr_points = nr > table->nr_points ? nr : table->nr_points;
		}
		func->nr_points = table->nr_points - func->first_point;
	}
	return true;
}

int me_audit_ranges_encode(const struct mp_cfg *cfg, uint32_t nr_audited,
			   const struct me_placement *placement, uint8_t **bytes, size_t *size,
			   struct mp_err *err)
{
	uint32_t *number_of = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*number_of));
	struct numbered *all = malloc(((size_t)placement->nr_copies + 1) * sizeof(*all));
	struct mp_audit_table table = {
		.funcs = calloc(nr_audited, sizeof(*table.funcs)),
		.nr_funcs = nr_audited,
		.ranges = malloc(((size_t)placement->nr_copies + 1) * sizeof(*table.ranges)),
	};
	int rc = -ENOMEM;

	if (number_of && all && table.funcs && table.ranges) {
		for (uint32_t f = 0; f < cfg->nr_funcs; f++)
			number_of[f] = MP_NONE;
		for (uint32_t i = 0; i < placement->nr_copies; i++) {
			const struct me_copy *copy = &placement->copies[i];
			const struct mp_block *block = &cfg->blocks[copy->block];

			if (!is_entry_stub(placement, copy))
				continue;
			number_of[block->func] = placement->stubs[copy->stub - 1].counter;
			table.funcs[number_of[block->func]].vaddr = block->vaddr;
		}
		fill(&table, all, collect(cfg, placement, number_of, all));
		rc = add_points(cfg, placement, &table)
			     ? mp_audit_table_encode(&table, bytes, size, err)
			     : mp_err_set(err, ENOMEM, "out of memory");
	} else {
		mp_err_set(err, ENOMEM, "out of memory");
	}
	free(number_of);
	free(all);
	free(table.funcs);
	free(table.ranges);
	free(table.points);
	return rc;
}
