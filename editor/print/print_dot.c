// SPDX-License-Identifier: Apache-2.0
/*
 * print_dot - a function as a graph in the language of Graphviz. Called by print.c.
 *
 * A node is a block, filled by its zone. An edge says how often control goes that way, and how it
 * gets there before and after: it falls through, or a branch or jump is taken.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "editor/print/print_private.h"
#include "libprof/base/text.h"

/* Inside double quotes of the language. @text is escaped for terminals already. */
static void put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_name(FILE *out, const struct mp_cfg *cfg, uint32_t func)
{
	char *name = mp_text_escaped(cfg->funcs[func].name);

	if (name && *name)
		put_quoted(out, name);
	else
		fprintf(out, "\"0x%" PRIx64 "\"", cfg->funcs[func].vaddr);
	free(name);
}

static bool has_counts(enum me_print_what what, const struct me_print *data)
{
	return what != ME_PRINT_CFG && data->counts;
}

/* The block's copy in the plan; NULL: it is not copied. */
static const struct me_plan_block *planned_of(const struct me_print *data,
					      const struct me_print_index *index, uint32_t block)
{
	if (!index->copy || index->copy[block] == MP_NONE)
		return NULL;
	return &data->plan->blocks[index->copy[block]];
}

/* Does the copy of block @from lie right before that of @to? */
static bool falls_to(const struct me_print *data, const struct me_print_index *index, uint32_t from,
		     uint32_t to)
{
	uint32_t i = index->copy[from];

	return i + 1 < data->plan->nr_blocks && data->plan->blocks[i + 1].block == to &&
	       !data->plan->blocks[i + 1].stub;
}

static void put_node(FILE *out, enum me_print_what what, const struct me_print *data,
		     const struct me_print_index *index, uint32_t b)
{
	const struct mp_block *block = &data->cfg->blocks[b];
	const struct me_plan_block *planned = planned_of(data, index, b);

	fprintf(out, "\tb%" PRIu32 " [label=\"0x%" PRIx64, b, block->vaddr);
	if (what == ME_PRINT_PLACE && planned)
		fprintf(out, "\\n-> 0x%" PRIx64, data->placement->copies[index->copy[b]].new_vaddr);
	fprintf(out, "\\n%" PRIu32 " bytes, %s", block->size, me_print_term(block));
	if (has_counts(what, data))
		fprintf(out, "\\n%.1f times", data->counts->block[b]);
	if (data->plan)
		fprintf(out, "\\n%s", planned ? me_print_zone(planned->zone) : "stays");
	fputc('"', out);
	if (planned)
		fprintf(out, ", style=filled, fillcolor=%s",
			planned->zone == ME_ZONE_HOT ? "salmon" : "khaki");
	fputs("];\n", out);
}

static void put_edge(FILE *out, enum me_print_what what, const struct me_print *data,
		     const struct me_print_index *index, uint32_t e)
{
	const struct mp_edge *edge = &data->cfg->edges[e];
	bool falls = false;

	fprintf(out, "\tb%" PRIu32 " -> b%" PRIu32 " [label=\"", edge->from, (uint32_t)edge->to);
	if (has_counts(what, data))
		fprintf(out, "%.1f\\n", data->counts->edge[e]);
	fputs(me_print_kind(edge), out);
	if (planned_of(data, index, edge->from) && edge->kind != MP_EDGE_TABLE) {
		falls = falls_to(data, index, edge->from, edge->to);
		fprintf(out, " -> %s",
			falls			     ? "fall"
			: edge->kind == MP_EDGE_JUMP ? "jump"
						     : "taken");
	}
	fprintf(out, "\"%s];\n", falls ? ", style=bold" : "");
}

void me_print_dot(FILE *out, enum me_print_what what, const struct me_print *data,
		  const struct me_print_index *index, uint32_t func)
{
	const struct mp_func *f = &data->cfg->funcs[func];
	const struct mp_cfg *cfg = data->cfg;

	fputs("digraph ", out);
	put_name(out, cfg, func);
	fputs(" {\n\tnode [shape=box];\n", out);
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++)
		put_node(out, what, data, index, b);
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			put_edge(out, what, data, index, e);
	}
	fputs("}\n", out);
}
