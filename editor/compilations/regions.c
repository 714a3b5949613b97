// SPDX-License-Identifier: Apache-2.0
/* regions - finds markers' loops in both compilations, and joins what cannot be told apart; see
 * regions.h. */
#include "editor/compilations/regions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A place where a marker's accesses stand: a loop, or a function outside of all its loops. */
struct home {
	uint32_t marker, func, loop; /* @func: of the build's analysis */
	bool dropped;		     /* around another one */
};

/* Calls from one function to another. */
struct arc {
	uint32_t from, to; /* indexes in regions->functions */
	uint32_t nr[ME_NR_BUILDS];
};

struct finder {
	const struct me_build *builds;
	struct me_regions *out;
	uint32_t *marker_of[ME_NR_BUILDS];   /* per marker of the build: index in out->markers */
	uint32_t *loop_marker[ME_NR_BUILDS]; /* per loop: a marker whose loop it is, or MP_NONE */
	struct home *homes[ME_NR_BUILDS];
	uint32_t nr_homes[ME_NR_BUILDS];
	struct arc *arcs;
	uint32_t nr_arcs;
	/* Nodes are markers, then functions. */
	uint32_t *leader[ME_NR_DIVISIONS];
};

/* ---- names ---------------------------------------------------------------------------------- */

/* foo.constprop.0 and foo.cold are parts of foo; a name may begin with a point. */
static size_t base_length(const char *name)
{
	return *name ? 1 + strcspn(name + 1, ".") : 0;
}

static char *base_name(const char *name, uint64_t vaddr)
{
	char text[32];

	if (*name)
		return strndup(name, base_length(name));
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)vaddr);
	return strdup(text);
}

static int by_function_name(const void *a, const void *b)
{
	const struct me_region_function *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_marker_name(const void *a, const void *b)
{
	const struct me_region_marker *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static uint32_t find_function(const struct me_regions *r, const char *name)
{
	struct me_region_function key = {.name = (char *)name}, *found;

	found = bsearch(&key, r->functions, r->nr_functions, sizeof(key), by_function_name);
	return found ? (uint32_t)(found - r->functions) : MP_NONE;
}

uint32_t me_regions_marker(const struct me_regions *regions, const char *name)
{
	struct me_region_marker key = {.name = (char *)name}, *found;

	found = bsearch(&key, regions->markers, regions->nr_markers, sizeof(key), by_marker_name);
	return found ? (uint32_t)(found - regions->markers) : MP_NONE;
}

static int list_functions(struct finder *f)
{
	struct me_regions *out = f->out;
	uint32_t nr = 0, kept = 0;

	for (int b = 0; b < ME_NR_BUILDS; b++)
		nr += f->builds[b].cfg->nr_funcs;
	out->functions = calloc((size_t)nr + 1, sizeof(*out->functions));
	if (!out->functions)
		return -ENOMEM;
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		const struct mp_cfg *cfg = f->builds[b].cfg;

		for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
			struct me_region_function *to = &out->functions[out->nr_functions];

			to->name = base_name(cfg->funcs[i].name, cfg->funcs[i].vaddr);
			if (!to->name)
				return -ENOMEM;
			to->present[b] = true;
			out->nr_functions++;
		}
	}
	qsort(out->functions, out->nr_functions, sizeof(*out->functions), by_function_name);
	for (uint32_t i = 0; i < out->nr_functions; i++) {
		struct me_region_function *to = &out->functions[kept ? kept - 1 : 0];

		if (!kept || strcmp(to->name, out->functions[i].name)) {
			out->functions[kept++] = out->functions[i];
			continue;
		}
		to->present[ME_OLD] |= out->functions[i].present[ME_OLD];
		to->present[ME_NEW] |= out->functions[i].present[ME_NEW];
		free(out->functions[i].name);
	}
	out->nr_functions = kept;
	return 0;
}

static char *marker_name(const struct me_marker *marker)
{
	const char *name = marker->name + strlen(ME_MARKER_PREFIX);

	return strndup(name, strcspn(name, ".")); /* .lto_priv.0 */
}

static int list_markers(struct finder *f)
{
	struct me_regions *out = f->out;
	uint32_t kept = 0;

	out->markers = calloc((size_t)f->builds[0].markers.nr + f->builds[1].markers.nr + 1,
			      sizeof(*out->markers));
	if (!out->markers)
		return -ENOMEM;
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		const struct me_markers *markers = &f->builds[b].markers;

		for (uint32_t i = 0; i < markers->nr; i++) {
			struct me_region_marker *to = &out->markers[out->nr_markers];

			to->name = marker_name(&markers->list[i]);
			if (!to->name)
				return -ENOMEM;
			to->placed = me_marker_find_place(f->builds[b].elf, markers->list[i].name,
							  &to->place);
			out->nr_markers++;
		}
	}
	qsort(out->markers, out->nr_markers, sizeof(*out->markers), by_marker_name);
	for (uint32_t i = 0; i < out->nr_markers; i++) {
		if (!kept || strcmp(out->markers[kept - 1].name, out->markers[i].name))
			out->markers[kept++] = out->markers[i];
		else
			free(out->markers[i].name);
	}
	out->nr_markers = kept;
	return 0;
}

static int number_names(struct finder *f, int b)
{
	const struct me_build *build = &f->builds[b];

	f->out->function_of[b] = calloc((size_t)build->cfg->nr_funcs + 1, sizeof(uint32_t));
	f->marker_of[b] = calloc((size_t)build->markers.nr + 1, sizeof(uint32_t));
	if (!f->out->function_of[b] || !f->marker_of[b])
		return -ENOMEM;
	for (uint32_t i = 0; i < build->cfg->nr_funcs; i++) {
		char *name = base_name(build->cfg->funcs[i].name, build->cfg->funcs[i].vaddr);

		if (!name)
			return -ENOMEM;
		f->out->function_of[b][i] = find_function(f->out, name);
		free(name);
	}
	for (uint32_t i = 0; i < build->markers.nr; i++) {
		char *name = marker_name(&build->markers.list[i]);

		if (!name)
			return -ENOMEM;
		f->marker_of[b][i] = me_regions_marker(f->out, name);
		free(name);
	}
	return 0;
}

/* ---- joining -------------------------------------------------------------------------------- */

static uint32_t leader_of(const struct finder *f, int division, uint32_t node)
{
	uint32_t *leader = f->leader[division];

	while (leader[node] != node)
		node = leader[node] = leader[leader[node]];
	return node;
}

static bool join(const struct finder *f, int division, uint32_t a, uint32_t b)
{
	a = leader_of(f, division, a);
	b = leader_of(f, division, b);
	f->leader[division][a] = b;
	return a != b;
}

static uint32_t function_node(const struct finder *f, int b, uint32_t func)
{
	return f->out->nr_markers + f->out->function_of[b][func];
}

static void join_both(const struct finder *f, uint32_t a, uint32_t b)
{
	for (int d = 0; d < ME_NR_DIVISIONS; d++)
		join(f, d, a, b);
}

/* ---- markers' loops ------------------------------------------------------------------------- */

static int by_home(const void *a, const void *b)
{
	const struct home *x = a, *y = b;

	if (x->marker != y->marker)
		return x->marker < y->marker ? -1 : 1;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->loop < y->loop ? -1 : x->loop > y->loop;
}

/* Drops a place that holds another place of the same marker in the same function. */
static void drop_outer(struct finder *f, int b)
{
	const struct me_file_loops *loops = &f->builds[b].loops;
	struct home *h = f->homes[b];

	for (uint32_t i = 0; i < f->nr_homes[b]; i++) {
		uint32_t k = i;

		while (k && h[k - 1].marker == h[i].marker && h[k - 1].func == h[i].func)
			k--;
		for (; k < f->nr_homes[b] && h[k].marker == h[i].marker && h[k].func == h[i].func;
		     k++)
			if (h[k].loop != h[i].loop &&
			    me_file_loop_holds(loops, h[i].loop, h[k].loop))
				h[i].dropped = true;
	}
}

static int find_homes(struct finder *f, int b)
{
	const struct me_build *build = &f->builds[b];
	const struct me_slices *slices = &build->slices;

	f->homes[b] = calloc((size_t)slices->nr_accesses + 1, sizeof(*f->homes[b]));
	if (!f->homes[b])
		return -ENOMEM;
	for (uint32_t i = 0; i < slices->nr_accesses; i++) {
		uint32_t block = mp_cfg_block_at(build->cfg, slices->accesses[i].vaddr);
		uint32_t marker = f->marker_of[b][slices->accesses[i].marker];

		if (block == MP_NONE)
			continue;
		f->homes[b][f->nr_homes[b]++] = (struct home){marker,
							      build->cfg->blocks[block].func,
							      build->loops.of_block[block], false};
		f->out->markers[marker].nr_stay[b] += slices->accesses[i].stays != ME_SLICE_GOES;
	}
	qsort(f->homes[b], f->nr_homes[b], sizeof(*f->homes[b]), by_home);
	drop_outer(f, b);
	for (uint32_t i = 0; i < f->nr_homes[b]; i++) {
		struct me_region_marker *m = &f->out->markers[f->homes[b][i].marker];

		m->nr_inside[b] += !f->homes[b][i].dropped;
		m->nr_outside[b] += f->homes[b][i].dropped;
	}
	return 0;
}

static int mark_loops(struct finder *f, int b)
{
	const struct me_file_loops *loops = &f->builds[b].loops;

	f->loop_marker[b] = calloc((size_t)loops->nr + 1, sizeof(uint32_t));
	if (!f->loop_marker[b])
		return -ENOMEM;
	for (uint32_t i = 0; i < loops->nr; i++)
		f->loop_marker[b][i] = MP_NONE;
	for (uint32_t i = 0; i < f->nr_homes[b]; i++) {
		const struct home *h = &f->homes[b][i];

		if (h->dropped || h->loop == MP_NONE)
			continue;
		if (f->loop_marker[b][h->loop] == MP_NONE)
			f->loop_marker[b][h->loop] = h->marker;
		join_both(f, f->loop_marker[b][h->loop], h->marker);
	}
	return 0;
}

/* Is there a marked loop in @outer, or is it one? */
static bool holds_marked(const struct finder *f, int b, uint32_t outer)
{
	const struct me_file_loops *loops = &f->builds[b].loops;

	for (uint32_t i = outer; i < loops->nr && loops->list[i].func == loops->list[outer].func;
	     i++)
		if (f->loop_marker[b][i] != MP_NONE && me_file_loop_holds(loops, outer, i))
			return true;
	return false;
}

/*
 * If a marker's increments lie outside of all loops of a function, the compiler took them out of
 * the loop, or removed the loop. If there is one such marker, all outermost loops without a marker
 * count as its loops.
 * Return: whether there are any.
 */
static bool give_loops(struct finder *f, int b, const struct home *home)
{
	const struct me_file_loops *loops = &f->builds[b].loops;
	bool any = false;

	for (uint32_t i = 0; i < f->nr_homes[b]; i++) {
		const struct home *h = &f->homes[b][i];

		if (!h->dropped && h->func == home->func && h->loop == MP_NONE &&
		    h->marker != home->marker)
			return false;
	}
	for (uint32_t i = 0; i < loops->nr; i++) {
		if (loops->list[i].func != home->func || loops->list[i].parent != MP_NONE ||
		    holds_marked(f, b, i))
			continue;
		f->loop_marker[b][i] = home->marker;
		any = true;
	}
	return any;
}

static void place_outside(struct finder *f, int b)
{
	for (uint32_t i = 0; i < f->nr_homes[b]; i++) {
		const struct home *h = &f->homes[b][i];
		uint32_t function = function_node(f, b, h->func);

		join(f, ME_DIVISION_FUNCTIONS, h->marker, function);
		if (h->dropped || h->loop != MP_NONE ||
		    (i && !by_home(h, &f->homes[b][i - 1]))) /* seen already */
			continue;
		if (!give_loops(f, b, h))
			join(f, ME_DIVISION_LOOPS, h->marker, function);
	}
}

/* ---- functions that were inlined ------------------------------------------------------------ */

static int by_arc(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static int find_arcs(struct finder *f)
{
	uint32_t kept = 0;

	f->arcs = calloc((size_t)f->builds[0].cfg->nr_calls + f->builds[1].cfg->nr_calls + 1,
			 sizeof(*f->arcs));
	if (!f->arcs)
		return -ENOMEM;
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		const struct mp_cfg *cfg = f->builds[b].cfg;

		for (uint32_t i = 0; i < cfg->nr_calls; i++) {
			struct arc arc = {0};

			if (cfg->calls[i].callee == MP_NONE)
				continue;
			arc.from = f->out->function_of[b][cfg->blocks[cfg->calls[i].block].func];
			arc.to = f->out->function_of[b][cfg->calls[i].callee];
			arc.nr[b] = 1;
			if (arc.from != arc.to)
				f->arcs[f->nr_arcs++] = arc;
		}
	}
	qsort(f->arcs, f->nr_arcs, sizeof(*f->arcs), by_arc);
	for (uint32_t i = 0; i < f->nr_arcs; i++) {
		if (!kept || by_arc(&f->arcs[kept - 1], &f->arcs[i])) {
			f->arcs[kept++] = f->arcs[i];
			continue;
		}
		for (int b = 0; b < ME_NR_BUILDS; b++)
			f->arcs[kept - 1].nr[b] += f->arcs[i].nr[b];
	}
	f->nr_arcs = kept;
	return 0;
}

/* Does any function joined with @from call any one joined with @to in build @b? */
static bool is_called(const struct finder *f, int b, uint32_t from, uint32_t to)
{
	uint32_t base = f->out->nr_markers, d = ME_DIVISION_FUNCTIONS;

	from = leader_of(f, d, base + from);
	to = leader_of(f, d, base + to);
	for (uint32_t i = 0; i < f->nr_arcs; i++)
		if (f->arcs[i].nr[b] && leader_of(f, d, base + f->arcs[i].from) == from &&
		    leader_of(f, d, base + f->arcs[i].to) == to)
			return true;
	return false;
}

/* A call that only one compilation has: the other one inlined it, so both functions are joined. */
static void join_inlined(struct finder *f)
{
	uint32_t base = f->out->nr_markers, d = ME_DIVISION_FUNCTIONS;
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < f->nr_arcs; i++) {
			const struct arc *arc = &f->arcs[i];

			if (leader_of(f, d, base + arc->from) == leader_of(f, d, base + arc->to))
				continue;
			if (arc->nr[ME_OLD] && arc->nr[ME_NEW])
				continue;
			if (!is_called(f, ME_OLD, arc->from, arc->to) ||
			    !is_called(f, ME_NEW, arc->from, arc->to))
				changed |= join(f, d, base + arc->from, base + arc->to);
		}
	}
	for (uint32_t i = 0; i < f->nr_arcs; i++)
		if (f->arcs[i].nr[ME_OLD] != f->arcs[i].nr[ME_NEW] &&
		    leader_of(f, d, base + f->arcs[i].from) !=
			    leader_of(f, d, base + f->arcs[i].to))
			f->out->functions[f->arcs[i].to].perhaps_inlined = true;
}

/* A marker belongs to the function in which its source stands. */
static int join_sources(struct finder *f)
{
	struct me_regions *out = f->out;

	for (uint32_t i = 0; i < out->nr_markers; i++) {
		const struct me_marker_place *place = &out->markers[i].place;
		uint32_t function;
		char *name;

		if (!out->markers[i].placed)
			continue;
		name = strndup(place->function, (size_t)place->function_len);
		if (!name)
			return -ENOMEM;
		function = find_function(out, name);
		free(name);
		if (function != MP_NONE)
			join(f, ME_DIVISION_FUNCTIONS, i, out->nr_markers + function);
	}
	return 0;
}

/* ---- result --------------------------------------------------------------------------------- */

static uint32_t node_of_block(const struct finder *f, int b, uint32_t block)
{
	const struct me_file_loops *loops = &f->builds[b].loops;
	uint32_t loop = loops->of_block[block];

	while (loop != MP_NONE && f->loop_marker[b][loop] == MP_NONE)
		loop = loops->list[loop].parent;
	return loop == MP_NONE ? function_node(f, b, f->builds[b].cfg->blocks[block].func)
			       : f->loop_marker[b][loop];
}

static int number_regions(struct finder *f, int d)
{
	struct me_regions *out = f->out;
	uint32_t nr_nodes = out->nr_markers + out->nr_functions;
	uint32_t *number = calloc((size_t)nr_nodes + 1, sizeof(*number));

	if (!number)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_nodes; i++)
		if (leader_of(f, d, i) == i)
			number[i] = out->nr[d]++;
	for (uint32_t i = 0; i < out->nr_markers; i++)
		out->markers[i].region[d] = number[leader_of(f, d, i)];
	for (uint32_t i = 0; i < out->nr_functions; i++)
		out->functions[i].region[d] = number[leader_of(f, d, out->nr_markers + i)];
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		uint32_t nr_blocks = f->builds[b].cfg->nr_blocks;

		out->of_block[d][b] = calloc((size_t)nr_blocks + 1, sizeof(uint32_t));
		if (!out->of_block[d][b]) {
			free(number);
			return -ENOMEM;
		}
		for (uint32_t i = 0; i < nr_blocks; i++) {
			uint32_t node =
				d == ME_DIVISION_LOOPS
					? node_of_block(f, b, i)
					: function_node(f, b, f->builds[b].cfg->blocks[i].func);

			out->of_block[d][b][i] = number[leader_of(f, d, node)];
		}
	}
	free(number);
	return 0;
}

static int start_leaders(struct finder *f)
{
	uint32_t nr = f->out->nr_markers + f->out->nr_functions;

	for (int d = 0; d < ME_NR_DIVISIONS; d++) {
		f->leader[d] = calloc((size_t)nr + 1, sizeof(uint32_t));
		if (!f->leader[d])
			return -ENOMEM;
		for (uint32_t i = 0; i < nr; i++)
			f->leader[d][i] = i;
	}
	return 0;
}

static int find_regions(struct finder *f)
{
	int rc = list_functions(f);

	if (!rc)
		rc = list_markers(f);
	if (!rc)
		rc = start_leaders(f);
	for (int b = 0; b < ME_NR_BUILDS && !rc; b++) {
		rc = number_names(f, b);
		if (!rc)
			rc = find_homes(f, b);
		if (!rc)
			rc = mark_loops(f, b);
		if (!rc)
			place_outside(f, b);
	}
	if (!rc)
		rc = join_sources(f);
	if (!rc)
		rc = find_arcs(f);
	if (!rc)
		join_inlined(f);
	for (int d = 0; d < ME_NR_DIVISIONS && !rc; d++)
		rc = number_regions(f, d);
	return rc;
}

int me_regions_find(const struct me_build builds[ME_NR_BUILDS], struct me_regions *out)
{
	struct finder f = {.builds = builds, .out = out};
	int rc;

	*out = (struct me_regions){0};
	rc = find_regions(&f);
	for (int b = 0; b < ME_NR_BUILDS; b++) {
		free(f.marker_of[b]);
		free(f.loop_marker[b]);
		free(f.homes[b]);
	}
	for (int d = 0; d < ME_NR_DIVISIONS; d++)
		free(f.leader[d]);
	free(f.arcs);
	return rc;
}

void me_regions_fini(struct me_regions *regions)
{
	for (uint32_t i = 0; i < regions->nr_markers; i++)
		free(regions->markers[i].name);
	for (uint32_t i = 0; i < regions->nr_functions; i++)
		free(regions->functions[i].name);
	free(regions->markers);
	free(regions->functions);
	for (int b = 0; b < ME_NR_BUILDS; b++)
		free(regions->function_of[b]);
	for (int d = 0; d < ME_NR_DIVISIONS; d++)
		for (int b = 0; b < ME_NR_BUILDS; b++)
			free(regions->of_block[d][b]);
	*regions = (struct me_regions){0};
}
