// SPDX-License-Identifier: Apache-2.0
/*
 * diff_rows - rows for functions and blocks of matched modules; see diff.h. Decides how code is
 * matched: by address within one build. Across builds, functions match by name, and blocks by
 * their offset in functions of equal name and size.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/demangle.h"
#include "daemon/diff/diff.h"
#include "libprof/base/search.h"

/* A build of a group's module: its code, and its functions sorted by name. */
struct build {
	const struct mp_module *module;
	struct md_code code;
	bool open;
	const struct mp_func **by_name;
	uint32_t nr;
	bool on_side[2];
};

struct builds {
	struct md_diff *diff;
	size_t group;
	struct build *all;
	size_t nr;
};

static int compare_names(const void *a, const void *b)
{
	const struct mp_func *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int sort_names(struct build *build)
{
	const struct mp_cfg *cfg = build->code.cfg;

	build->by_name = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*build->by_name));
	if (!build->by_name)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (cfg->funcs[f].name[0])
			build->by_name[build->nr++] = &cfg->funcs[f];
	if (build->nr)
		qsort(build->by_name, build->nr, sizeof(*build->by_name), compare_names);
	return 0;
}

/* Return: number of functions called @name; *@func is one of them. */
static size_t find_name(const struct build *build, const char *name, const struct mp_func **func)
{
	size_t nr = 0;
	size_t low = mp_search(i, 0, build->nr, strcmp(build->by_name[i]->name, name) < 0);

	for (; low < build->nr && !strcmp(build->by_name[low]->name, name); low++, nr++)
		*func = build->by_name[low];
	return nr;
}

/* ---- code ---------------------------------------------------------------------------------- */

/*
 * Opens the --binary that is this build, else the file at the module's last known path. Return: 0, also if
 * there is none; -errno: a failure of the machine.
 */
static int open_code(struct builds *b, struct build *build)
{
	struct mp_err why = {0};
	bool blocks = b->diff->by == MD_BY_BLOCK;
	char text[MP_ERR_SIZE + 64];
	int r = -ENOENT;

	for (size_t i = 0; i < b->diff->nr_binaries && r && !mp_err_is_failure(r); i++)
		r = md_code_open(build->module, b->diff->binaries[i], blocks, &build->code, &why);
	if (r && !mp_err_is_failure(r))
		r = md_code_open(build->module, NULL, blocks, &build->code, &why);
	build->open = !r;
	if (mp_err_is_failure(r))
		return r;
	if (build->open || build->module->kind != MP_MODULE_FILE)
		return 0;
	snprintf(text, sizeof(text), "%s: its functions are not known", why.msg);
	b->diff->note(b->diff->ctx, text);
	return 0;
}

static struct build *find_build(struct builds *b, const struct mp_module *module)
{
	struct build *build;

	for (size_t i = 0; i < b->nr; i++)
		if (mp_id_equal(&b->all[i].module->id, &module->id))
			return &b->all[i];
	build = realloc(b->all, (b->nr + 1) * sizeof(*build));
	if (!build)
		return NULL;
	b->all = build;
	build += b->nr++;
	memset(build, 0, sizeof(*build));
	build->module = module;
	return build;
}

static void free_builds(struct builds *b)
{
	for (size_t i = 0; i < b->nr; i++) {
		md_code_close(&b->all[i].code);
		free(b->all[i].by_name);
	}
	free(b->all);
}

static int open_builds(struct builds *b)
{
	for (size_t s = 0; s < 2; s++) {
		const struct md_diff_side *side = &b->diff->sides[s];

		for (size_t i = 0; i < side->nr; i++) {
			struct build *build;

			if (!side->more[i].samples || side->more[i].group != b->group)
				continue;
			build = find_build(b, &side->modules[i]);
			if (!build)
				return -ENOMEM;
			build->on_side[s] = true;
		}
	}
	for (size_t i = 0; i < b->nr; i++) {
		int r = open_code(b, &b->all[i]);

		if (r)
			return r;
		if (b->all[i].open && b->nr > 1 && sort_names(&b->all[i]))
			return -ENOMEM;
	}
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct md_diff *diff, const struct build *build,
		      const struct md_row *row)
{
	const char *wanted = diff->function;
	char *end;

	if (!wanted)
		return true;
	if (row->function && md_name_match(row->function, wanted) != MD_NAME_OTHER)
		return true;
	if (!strncmp(wanted, "0x", 2) && row->function && build->open) {
		uint64_t address = strtoull(wanted, &end, 16);
		uint32_t f = mp_cfg_func_at(build->code.cfg, address);

		return !*end && f != MP_NONE && f == mp_cfg_func_at(build->code.cfg, row->vaddr);
	}
	return false;
}

static bool has_name(const struct build *build, const struct md_row *row)
{
	const struct mp_func *func;

	return row->function && find_name(build, row->function, &func) > 0;
}

/* Blocks can be matched if every build has exactly one function of this name, all of equal size. */
static bool same_shape(const struct builds *b, const char *name)
{
	const struct mp_func *func = NULL, *first = NULL;

	for (size_t i = 0; i < b->nr; i++) {
		if (!b->all[i].open || find_name(&b->all[i], name, &func) != 1 ||
		    (first && func->size != first->size))
			return false;
		first = func;
	}
	return true;
}

/* Says whether the other side lacks the function. Needs the code of all its builds. */
static enum md_diff_code code_of(const struct builds *b, const char *name, const uint64_t *samples)
{
	const struct mp_func *func;
	size_t other = samples[0] ? 1 : 0;

	if (b->nr < 2 || (samples[0] && samples[1]))
		return MD_DIFF_SAME;
	for (size_t i = 0; i < b->nr; i++)
		if (b->all[i].on_side[other] &&
		    (!b->all[i].open || find_name(&b->all[i], name, &func)))
			return MD_DIFF_SAME;
	return other ? MD_DIFF_GONE : MD_DIFF_ADDED;
}

static int add_row(struct builds *b, const struct build *build, size_t side,
		   const struct md_row *row)
{
	struct md_diff_row out = {.group = b->group, .vaddr = row->vaddr, .offset = row->offset};
	bool one_build = b->nr == 1;
	bool named = !one_build && build->open && has_name(build, row);

	out.samples[side] = row->samples;
	out.by_name = named && (b->diff->by != MD_BY_BLOCK || same_shape(b, row->function));
	/* Samples outside of all functions form one row, so they have no address. */
	if (!row->function || out.by_name)
		out.vaddr = 0;
	/* Addresses of different builds cannot be compared. */
	else if (!one_build)
		out.build = (size_t)(build - b->all) + 1;
	if (row->function) {
		out.function = strdup(row->function);
		if (!out.function)
			return -ENOMEM;
	}
	return md_diff_add_row(b->diff, &out);
}

static int add_module(struct builds *b, size_t side, size_t index)
{
	const struct mp_module *module = &b->diff->sides[side].modules[index];
	const struct md_diff_module *more = &b->diff->sides[side].more[index];
	struct build *build = find_build(b, module);
	struct md_rows rows = {0};
	int r;

	if (!build)
		return -ENOMEM;
	if (!build->open) {
		struct md_row all = {.module = module, .samples = more->samples};

		return b->diff->function ? 0 : add_row(b, build, side, &all);
	}
	if (b->diff->by == MD_BY_BLOCK)
		r = md_rows_of_blocks(&rows, module, &build->code, NULL, more->counts,
				      more->nr_counts);
	else
		r = md_rows_of_functions(&rows, module, &build->code, NULL, more->counts,
					 more->nr_counts);
	for (size_t i = 0; i < rows.nr && !r; i++)
		if (is_wanted(b->diff, build, &rows.rows[i]))
			r = add_row(b, build, side, &rows.rows[i]);
	md_rows_free(&rows);
	return r;
}

static int add_group(struct md_diff *diff, size_t group)
{
	struct builds b = {.diff = diff, .group = group};
	size_t first = diff->nr_rows;
	int r = open_builds(&b);

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < diff->sides[s].nr && !r; i++)
			if (diff->sides[s].more[i].samples && diff->sides[s].more[i].group == group)
				r = add_module(&b, s, i);
	md_diff_unite_rows(diff, first);
	for (size_t i = first; i < diff->nr_rows && !r; i++)
		if (diff->rows[i].by_name)
			diff->rows[i].code =
				code_of(&b, diff->rows[i].function, diff->rows[i].samples);
	free_builds(&b);
	return r;
}

int md_diff_code_rows(struct md_diff *diff, struct mp_err *err)
{
	int r = 0;

	for (size_t g = 0; g < diff->nr_groups && !r; g++)
		if (diff->groups[g].wanted)
			r = add_group(diff, g);
	return r ? mp_err_code(err, -r) : 0;
}
