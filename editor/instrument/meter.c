// SPDX-License-Identifier: Apache-2.0
/* meter - reads places, has instrument find their stubs, and writes the table that says which counter counts what. */
#include "editor/instrument/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/instrument/instrument.h"
#include "editor/instrument/stubs.h"
#include "libprof/base/infile.h"
#include "libprof/note/edge_place.h"

struct me_meter {
	const struct mp_cfg *cfg;
	struct mp_edge_place places[MP_METER_PLACES_MAX];
	uint32_t nr;
	struct me_stubs stubs; /* stub i counts place i, until they are put into a plan */
	uint8_t *functions;
};

/* ---- the list ---------------------------------------------------------------------------- */

static int add_line(struct me_meter *m, const char *path, const char *line, struct mp_err *err)
{
	struct mp_edge_place *place = &m->places[m->nr];

	if (m->nr == MP_METER_PLACES_MAX)
		return mp_err_set(err, EINVAL, "%s: more than %d places", path,
				  MP_METER_PLACES_MAX);
	if (!mp_edge_place_parse(line, place))
		return mp_err_set(err, EINVAL,
				  "%s:%u: '%.60s' is no place, as 0x401230, 0x401230<outside or "
				  "0x401230<0x401200 are",
				  path, m->nr + 1, line);
	for (uint32_t i = 0; i < m->nr; i++)
		if (m->places[i].block == place->block && m->places[i].from == place->from)
			return mp_err_set(err, EINVAL, "%s:%u: %s is named twice", path, m->nr + 1,
					  line);
	m->nr++;
	return 0;
}

static int read_list(struct me_meter *m, const char *path, struct mp_err *err)
{
	char *line = NULL;
	size_t room = 0;
	FILE *in;
	int rc = mp_infile_stream(path, &in, err), more;

	if (rc)
		return rc;
	while (!rc && (more = mp_infile_line(in, &line, &room)))
		rc = more < 0 ? mp_err_set(err, -more, "%s: %s", path, mp_infile_why(more))
			      : add_line(m, path, line, err);
	free(line);
	fclose(in);
	if (!rc && !m->nr)
		rc = mp_err_set(err, EINVAL, "%s: names no place", path);
	return rc;
}

/* ---- stubs ------------------------------------------------------------------------------- */

/* Why no counter can stand at @place; NULL: its function may move. */
static const char *why_not(const struct mp_cfg *cfg, const struct mp_edge_place *place,
			   const uint8_t *movable, const char *const *detail)
{
	uint32_t func = mp_cfg_func_at(cfg, place->block);

	if (func == MP_NONE)
		return "it lies in no function";
	if (movable[func])
		return NULL;
	return detail[func] ? detail[func] : "its function does not move";
}

static int find_stub(struct me_meter *m, struct me_instrument *in, uint32_t i, const char *why,
		     struct mp_err *err)
{
	struct me_stub_to stub = {0};
	char text[MP_EDGE_PLACE_TEXT];
	int rc = why ? -EPERM : me_instrument_stub(in, &m->places[i], &stub);

	if (rc == -ENOENT)
		why = "no block begins there, or no control goes this way";
	else if (rc == -EPERM && !why)
		why = "code behind it reads flags that the counter would change, or the block is not "
		      "copied";
	mp_edge_place_format(&m->places[i], text);
	if (why)
		return mp_err_set(err, EPERM, "no counter can stand at %s: %s", text, why);
	stub.what.counter = i;
	if (rc || !me_stubs_add(&m->stubs, stub))
		return mp_err_set(err, ENOMEM, "out of memory");
	m->functions[m->cfg->blocks[stub.block].func] = 1;
	return 0;
}

static int find_stubs(struct me_meter *m, const uint8_t *movable, const char *const *detail,
		      struct mp_err *err)
{
	uint32_t nr = m->cfg->nr_funcs;
	uint8_t *counted = malloc((size_t)nr + 1);
	const char **why = malloc(((size_t)nr + 1) * sizeof(*why));
	struct me_instrument *in = NULL;
	int rc = counted && why ? 0 : mp_err_set(err, ENOMEM, "out of memory");

	if (!rc) {
		memcpy(counted, movable, nr);
		memcpy(why, detail, nr * sizeof(*why));
		/* Counters are added to a copy along its unwind rows. */
		for (uint32_t f = 0; f < nr; f++)
			if (counted[f] && m->cfg->funcs[f].flags & MP_FUNC_BARE) {
				counted[f] = 0;
				why[f] = mp_problem_name(MP_PROBLEM_NO_FDE);
			}
		rc = me_instrument_new(m->cfg, counted, why, &in, err);
	}
	for (uint32_t i = 0; i < m->nr && !rc; i++)
		rc = find_stub(m, in, i, why_not(m->cfg, &m->places[i], counted, why), err);
	me_instrument_free(in);
	free(counted);
	free(why);
	return rc;
}

int me_meter_new(const struct mp_cfg *cfg, const uint8_t *movable, const char *const *detail,
		 const char *path, struct me_meter **out, struct mp_err *err)
{
	struct me_meter *m = calloc(1, sizeof(*m));
	int rc;

	*out = NULL;
	if (m)
		m->functions = calloc((size_t)cfg->nr_funcs + 1, 1);
	if (!m || !m->functions) {
		me_meter_free(m);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	m->cfg = cfg;
	m->stubs.others_stay = true;
	rc = read_list(m, path, err);
	if (!rc)
		rc = find_stubs(m, movable, detail, err);
	if (rc)
		me_meter_free(m);
	else
		*out = m;
	return rc;
}

const uint8_t *me_meter_functions(const struct me_meter *m)
{
	return m->functions;
}

void me_meter_free(struct me_meter *m)
{
	if (!m)
		return;
	me_stubs_fini(&m->stubs);
	free(m->functions);
	free(m);
}

/* ---- the table --------------------------------------------------------------------------- */

struct table {
	struct mp_edge_table out;
	struct mp_counted_func funcs[MP_METER_PLACES_MAX];
	struct mp_counted_block blocks[2 * MP_METER_PLACES_MAX];
	struct mp_counted_edge edges[MP_METER_PLACES_MAX];
};

static int compare_blocks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The cfg blocks of all stubs, ascending, each once. Return: their number. */
static uint32_t find_blocks(const struct me_meter *m, uint32_t blocks[2 * MP_METER_PLACES_MAX])
{
	uint32_t nr = 0, kept = 0;

	for (uint32_t i = 0; i < m->stubs.nr; i++) {
		const struct me_stub_to *stub = &m->stubs.list[i];

		blocks[nr++] = stub->block;
		if (stub->what.arrivals == ME_STUB_EDGE)
			blocks[nr++] = stub->what.from;
	}
	qsort(blocks, nr, sizeof(*blocks), compare_blocks);
	for (uint32_t i = 0; i < nr; i++)
		if (!kept || blocks[kept - 1] != blocks[i])
			blocks[kept++] = blocks[i];
	return kept;
}

static uint32_t index_of(const uint32_t *blocks, uint32_t block)
{
	uint32_t i = 0;

	while (blocks[i] != block)
		i++;
	return i;
}

/* The kind of the edge between two blocks of the cfg. */
static uint8_t kind_of(const struct mp_cfg *cfg, uint32_t from, uint32_t to)
{
	const struct mp_block *block = &cfg->blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (cfg->edges[e].to == to)
			return cfg->edges[e].kind;
	return MP_EDGE_FALL;
}

static struct mp_counted_edge edge_of(const struct me_meter *m, const struct me_stub_to *stub,
				      const uint32_t *blocks)
{
	struct mp_counted_edge edge = {.from = MP_NONE,
				       .to = index_of(blocks, stub->block),
				       .counter = stub->what.counter,
				       .kind = MP_EDGE_OUTSIDE};

	if (stub->what.arrivals == ME_STUB_ALL) {
		edge.from = edge.to;
		edge.to = MP_NONE;
	} else if (stub->what.arrivals == ME_STUB_EDGE) {
		edge.from = index_of(blocks, stub->what.from);
		edge.kind = kind_of(m->cfg, stub->what.from, stub->block);
	}
	return edge;
}

static void fill(const struct me_meter *m, struct table *t)
{
	uint32_t blocks[2 * MP_METER_PLACES_MAX], nr = find_blocks(m, blocks);
	const struct mp_cfg *cfg = m->cfg;

	t->out = (struct mp_edge_table){.funcs = t->funcs,
					.blocks = t->blocks,
					.nr_blocks = nr,
					.edges = t->edges,
					.nr_counters = m->nr};
	for (uint32_t b = 0, end; b < nr; b = end) {
		struct mp_counted_func *func = &t->funcs[t->out.nr_funcs++];

		func->first_block = b;
		func->first_edge = t->out.nr_edges;
		for (end = b;
		     end < nr && cfg->blocks[blocks[end]].func == cfg->blocks[blocks[b]].func;
		     end++) {
			const struct mp_block *block = &cfg->blocks[blocks[end]];

			t->blocks[end] = (struct mp_counted_block){block->vaddr, block->size,
								   block->size - block->term_len};
		}
		for (uint32_t i = 0; i < m->stubs.nr; i++)
			if (cfg->blocks[m->stubs.list[i].block].func == cfg->blocks[blocks[b]].func)
				t->edges[t->out.nr_edges++] = edge_of(m, &m->stubs.list[i], blocks);
		func->nr_blocks = end - b;
		func->nr_edges = t->out.nr_edges - func->first_edge;
	}
}

int me_meter_plan(struct me_meter *m, struct me_plan *plan, struct me_instrumentation *added,
		  struct me_meter_report *report, struct mp_err *err)
{
	struct table table;

	fill(m, &table);
	*report = (struct me_meter_report){.nr_places = m->nr, .nr_funcs = table.out.nr_funcs};
	added->nr_counters = m->nr;
	added->table_name = MP_METER_TABLE_SECTION;
	if (me_stubs_put(m->cfg, m->functions, &m->stubs, plan, added, &report->nr_inline))
		return mp_err_set(err, ENOMEM, "out of memory");
	return mp_edge_table_encode(&table.out, &added->table, &added->table_size, err);
}
