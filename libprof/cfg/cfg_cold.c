// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_cold - joins a function with its cold part: one function, several ranges.
 * Jumps decide, not names, because several functions of one file may have the same name. A
 * part that is called, or that two functions jump to, stays a function of its own. Called
 * by cfg.
 */
#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/cfg/cfg_private.h"

#define MANY (MP_NONE - 1)

struct part_facts {
	uint32_t jumper;      /* the only part that jumps here; MP_NONE: none; MANY: several */
	uint32_t into;	      /* the only part into whose middle this part jumps */
	bool called, outside; /* called; a jump from code outside of functions arrives here */
	bool framed;	      /* a jump arrives while a frame exists: it is no tail call */
};

struct join {
	struct mp_cfg_build *b;
	struct part_facts *facts;
	uint32_t *root;
};

/* Length of @name before ".cold" or ".cold.N"; 0 if it is no such name. */
static size_t cold_base(const char *name)
{
	const char *p = NULL, *q = name;

	while ((q = strstr(q, ".cold"))) {
		p = q;
		q += 5;
	}
	if (!p || p == name)
		return 0;
	q = p + 5;
	if (*q && *q != '.')
		return 0;
	while (*q == '.' || (*q >= '0' && *q <= '9'))
		q++;
	return *q ? 0 : (size_t)(p - name);
}

int mp_cfg_add_far_link(struct mp_cfg_build *b, uint32_t from_part, uint32_t target)
{
	return mp_push(b->far_links, b->nr_far_links, b->cap_far_links,
		       (struct mp_far_link){from_part, target});
}

static void note_one(uint32_t *one, uint32_t part)
{
	if (*one == MP_NONE)
		*one = part;
	else if (*one != part)
		*one = MANY;
}

static bool entry_row(const struct join *j, uint32_t part, uint32_t at)
{
	const struct mp_range *range = &j->b->part_ranges[part];

	if (range->fde == MP_NONE)
		return true;
	return mp_cfa_is_entry_row(j->b->index, &j->b->elf->fdes[range->fde],
				   mp_space_vaddr(j->b->index, at));
}

static void note_jump(struct join *j, uint32_t from, const struct mp_flow *flow)
{
	const struct mp_cfg_index *index = j->b->index;
	uint32_t to = mp_part_at(index, flow->target);

	if (to == MP_NONE || to == from)
		return;
	if (flow->kind == MP_INSN_CALL) {
		j->facts[to].called = true;
		return;
	}
	note_one(&j->facts[to].jumper, from);
	if (flow->target != index->parts[to].at)
		note_one(&j->facts[from].into, to);
}

static void look(struct join *j)
{
	struct mp_cfg_build *b = j->b;
	const struct mp_cfg_index *index = b->index;
	uint32_t flow = 0;

	for (uint32_t p = 0; p <= index->nr_parts; p++) {
		uint32_t first = p < index->nr_parts ? index->parts[p].first_flow : b->nr_flows;

		/* Flows before the part belong to no function. */
		for (; flow < first; flow++) {
			uint32_t to = b->flows[flow].target;

			to = to == MP_NONE ? MP_NONE : mp_part_at(index, to);
			if (to != MP_NONE)
				j->facts[to].outside = true;
		}
		if (p == index->nr_parts)
			break;
		for (; flow < first + index->parts[p].nr_flows; flow++) {
			const struct mp_flow *f = &b->flows[flow];

			if (f->target - index->parts[p].at <
			    index->parts[p].end - index->parts[p].at)
				continue;
			if (f->target != MP_NONE)
				note_jump(j, p, f);
		}
	}
	for (uint32_t i = 0; i < b->nr_far_links; i++) {
		uint32_t to = mp_part_at(index, b->far_links[i].target);

		if (to == MP_NONE)
			continue;
		note_one(&j->facts[to].jumper, b->far_links[i].from_part);
		j->facts[to].framed = true;
	}
}

/* True if @from jumps into @to, and not to its start with the frame torn down. */
static bool jumps_with_frame(const struct join *j, uint32_t from, uint32_t to)
{
	const struct mp_part *part = &j->b->index->parts[from];
	uint32_t start = j->b->index->parts[to].at, end = j->b->index->parts[to].end;

	for (uint32_t i = 0; i < part->nr_flows; i++) {
		const struct mp_flow *f = &j->b->flows[part->first_flow + i];

		if (f->target < start || f->target >= end)
			continue;
		if (f->target != start || !entry_row(j, from, f->at))
			return true;
	}
	return false;
}

/* True if the nameless part @p can only be a piece of the one part that jumps to it. */
static bool nameless_is_cold(const struct join *j, uint32_t p)
{
	const struct part_facts *a = &j->facts[p];
	const struct mp_part *part = &j->b->index->parts[p];

	if (a->jumper >= MANY || a->called || a->outside)
		return false;
	if (a->framed)
		return true;
	if (mp_bit(j->b->address_taken, part->at) || mp_bit(j->b->pointed, part->at))
		return false;
	if (a->into == a->jumper)
		return true;
	return !entry_row(j, p, part->at) || jumps_with_frame(j, a->jumper, p);
}

/*
 * True if nothing calls @p and at most one function jumps to it. A table of that function
 * may lead there, too.
 */
static bool is_orphan(const struct join *j, uint32_t p)
{
	const struct mp_func *func = &j->b->part_funcs[p];
	const struct part_facts *a = &j->facts[p];

	if (a->called || a->outside || a->jumper == MANY ||
	    mp_bit(j->b->address_taken, j->b->index->parts[p].at))
		return false;
	return func->symbol == MP_NONE || cold_base(func->name);
}

static bool same_base(const struct join *j, uint32_t p, size_t base, uint32_t candidate)
{
	const char *name = j->b->part_funcs[p].name;
	const char *other = j->b->part_funcs[candidate].name;

	return !strncmp(name, other, base) && !other[base];
}

static uint32_t parent_of(const struct join *j, uint32_t p)
{
	const struct mp_func *func = &j->b->part_funcs[p];
	const struct part_facts *a = &j->facts[p];
	size_t base = func->symbol == MP_NONE ? 0 : cold_base(func->name);

	if (func->problem == MP_PROBLEM_OVERLAP || func->problem == MP_PROBLEM_SPECIAL)
		return MP_NONE;
	if (func->symbol == MP_NONE)
		return nameless_is_cold(j, p) ? a->jumper : MP_NONE;
	if (!base || a->called || a->outside)
		return MP_NONE;
	if (a->jumper < MANY)
		return a->jumper;
	/* Only tables or landing pads lead here: the jump back and the name must agree. */
	if (a->jumper == MP_NONE && a->into < MANY && same_base(j, p, base, a->into))
		return a->into;
	return MP_NONE;
}

static uint32_t find_root(const uint32_t *root, uint32_t p)
{
	for (unsigned int steps = 0; steps < 64; steps++) {
		if (root[p] == p)
			return p;
		p = root[p];
	}
	return MP_NONE; /* two nameless parts that only jump to each other */
}

/* True if @p has no name and begins without a frame, as functions do. */
static bool begins_frameless(const struct join *j, uint32_t p)
{
	return j->b->part_funcs[p].symbol == MP_NONE && entry_row(j, p, j->b->index->parts[p].at);
}

/*
 * If two parts jump to each other, the wrong one may have become the root. A part that
 * begins in the middle of a frame is no function, so the first part that begins without one
 * replaces it as root.
 */
static void swap_roots(const struct join *j)
{
	uint32_t nr = j->b->index->nr_parts;

	for (uint32_t p = 0; p < nr; p++) {
		uint32_t root = j->root[p];

		if (root == p || j->root[root] != root ||
		    j->b->part_funcs[root].symbol != MP_NONE || begins_frameless(j, root) ||
		    !begins_frameless(j, p))
			continue;
		j->root[root] = p;
		j->root[p] = p;
	}
	for (uint32_t p = 0; p < nr; p++)
		j->root[p] = find_root(j->root, p);
}

static int compare_parts(const void *a, const void *b, void *ctx)
{
	const uint32_t *root = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (root[i] != root[j])
		return root[i] < root[j] ? -1 : 1;
	/* The range with the entry comes first. */
	if ((root[i] == i) != (root[j] == j))
		return root[i] == i ? -1 : 1;
	return i < j ? -1 : i > j;
}

/* Renumbers functions and ranges: each root is a function, and ranges are grouped by function. */
static int regroup(struct join *j)
{
	struct mp_cfg *cfg = j->b->cfg;
	struct mp_part *parts = j->b->index->parts;
	uint32_t nr = j->b->index->nr_parts, nr_funcs = 0;
	uint32_t *order = calloc((size_t)nr + 1, sizeof(*order));
	struct mp_range *ranges = calloc((size_t)nr + 1, sizeof(*ranges));
	struct mp_func *funcs = calloc((size_t)nr + 1, sizeof(*funcs));

	if (!order || !ranges || !funcs) {
		free(order);
		free(ranges);
		free(funcs);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	qsort_r(order, nr, sizeof(*order), compare_parts, j->root);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t p = order[i];
		const struct mp_func *old = &j->b->part_funcs[p];
		struct mp_func *func;

		if (j->root[p] == p) {
			func = &funcs[nr_funcs++];
			*func = *old;
			func->first_range = i;
			func->nr_ranges = 0;
			func->size = 0;
		}
		func = &funcs[nr_funcs - 1];
		func->nr_ranges++;
		func->size += old->size;
		func->flags |= old->flags & (MP_FUNC_SYSCALL | MP_FUNC_GET_PC);
		if (old->problem)
			mp_func_problem(func, (enum mp_problem)old->problem, old->problem_vaddr);
		ranges[i] = j->b->part_ranges[p];
		ranges[i].func = nr_funcs - 1;
		ranges[i].cold = j->root[p] != p;
		parts[p].range = i;
		parts[p].func = nr_funcs - 1;
		j->b->part_of_range[i] = p;
	}
	free(order);
	free(cfg->ranges);
	free(cfg->funcs);
	cfg->ranges = ranges;
	cfg->funcs = funcs;
	cfg->nr_funcs = nr_funcs;
	return 0;
}

int mp_cfg_join_cold(struct mp_cfg_build *b)
{
	uint32_t nr = b->index->nr_parts;
	struct join j = {.b = b};
	int ret = -ENOMEM;

	if (!b->part_funcs) {
		b->part_funcs = b->cfg->funcs;
		b->part_ranges = b->cfg->ranges;
		b->cfg->funcs = NULL;
		b->cfg->ranges = NULL;
		b->part_of_range = calloc((size_t)nr + 1, sizeof(*b->part_of_range));
	}
	j.facts = calloc((size_t)nr + 1, sizeof(*j.facts));
	j.root = calloc((size_t)nr + 1, sizeof(*j.root));
	if (!b->part_of_range || !j.facts || !j.root)
		goto out;
	for (uint32_t p = 0; p < nr; p++)
		j.facts[p].jumper = j.facts[p].into = MP_NONE;
	look(&j);
	for (uint32_t p = 0; p < nr; p++) {
		uint32_t parent = parent_of(&j, p);

		j.root[p] = parent == MP_NONE ? p : parent;
		if (parent == MP_NONE && is_orphan(&j, p))
			mp_bit_set(b->orphans, b->index->parts[p].at);
		else
			mp_bit_clear(b->orphans, b->index->parts[p].at);
	}
	for (uint32_t p = 0; p < nr; p++) {
		uint32_t root = find_root(j.root, p);

		if (root == MP_NONE)
			j.root[p] = p;
	}
	for (uint32_t p = 0; p < nr; p++)
		j.root[p] = find_root(j.root, p);
	swap_roots(&j);
	ret = regroup(&j);
out:
	free(j.facts);
	free(j.root);
	return ret;
}
