// SPDX-License-Identifier: Apache-2.0
/*
 * annotate_json - prints an annotated function as JSON; see annotate_print.h. Decides the names
 * of the fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/cli/json.h"

#include "daemon/annotate/annotate_print.h"

static json_t *number(double value, bool known)
{
	return known ? json_real(value) : json_null();
}

static json_t *line_json(const struct md_line *line)
{
	if (!line->file)
		return json_null();
	return json_pack("{s:o, s:i}", "file", mp_json_string(line->file), "line", line->line);
}

static json_t *ranges_json(const struct md_annotation *a)
{
	const struct mp_range *ranges = a->code->cfg->ranges + a->func->first_range;
	json_t *list = json_array();

	for (uint32_t i = 0; i < a->func->nr_ranges; i++)
		json_array_append_new(list, json_pack("{s:o, s:I, s:b}", "address",
						      mp_json_address(ranges[i].start), "bytes",
						      (json_int_t)ranges[i].size, "cold",
						      ranges[i].cold));
	return list;
}

static json_t *block_json(const struct md_annotation *a, uint32_t index)
{
	static const char *const kinds[] = {"fall-through", "taken", "jump", "table"};
	const struct md_ann_block *b = &a->blocks[index];
	const struct mp_cfg *cfg = a->code->cfg;
	const struct mp_map_piece *piece = a->map ? md_map_piece(a->map, b->block->vaddr) : NULL;
	json_t *to = json_array(), *json;

	for (uint32_t e = b->block->first_edge; e < b->block->first_edge + b->block->nr_edges; e++)
		json_array_append_new(
			to,
			json_pack("{s:I, s:s}", "block",
				  (json_int_t)a->index_of[cfg->edges[e].to - a->func->first_block],
				  "kind", kinds[cfg->edges[e].kind]));
	json = json_pack("{s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:o}", "block",
			 (json_int_t)index, "address", mp_json_address(b->block->vaddr), "bytes",
			 (json_int_t)b->block->size, "instructions", (json_int_t)b->nr_insns,
			 "samples", (json_int_t)b->samples, "weight", json_real(b->weight), "count",
			 number(b->count, b->count >= 0), "taken", number(b->taken, b->taken >= 0),
			 "cold", !!(b->block->flags & MP_BLOCK_COLD_PART), "landing_pad",
			 !!(b->block->flags & MP_BLOCK_LANDING_PAD), "successors", to);
	if (a->map)
		json_object_set_new(json, "original",
				    !piece	      ? mp_json_address(b->block->vaddr)
				    : piece->old_size ? mp_json_address(piece->old_vaddr)
						      : json_null());
	return json;
}

static json_t *inlines_json(const struct md_annotation *a, const struct md_ann_insn *insn)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < insn->nr_inlines; i++) {
		const struct md_inline *call = &a->inlines[insn->first_inline + i];

		json_array_append_new(list, json_pack("{s:o, s:o}", "function",
						      mp_json_string(call->function), "call",
						      line_json(&call->call)));
	}
	return list;
}

static json_t *insn_json(const struct md_ann_print *p, const struct md_ann_insn *insn)
{
	const struct md_annotation *a = p->a;
	json_t *json = json_pack(
		"{s:o, s:I, s:s, s:I, s:f, s:o, s:b}", "address", mp_json_address(insn->vaddr),
		"bytes", (json_int_t)insn->len, "text", insn->text, "samples",
		(json_int_t)insn->samples, "percent",
		a->samples ? 100.0 * (double)insn->samples / (double)a->samples : 0.0, "block",
		insn->block == MP_NONE ? json_null() : json_integer(insn->block), "hot", insn->hot);

	if (a->map)
		json_object_set_new(json, "original",
				    insn->added ? json_null() : mp_json_address(insn->original));
	if (insn->target)
		json_object_set_new(json, "target", mp_json_address(insn->target));
	if (insn->target_block != MP_NONE)
		json_object_set_new(json, "target_block", json_integer(insn->target_block));
	if (insn->target_name)
		json_object_set_new(json, "target_name", mp_json_string(insn->target_name));
	if (p->source) {
		json_object_set_new(json, "source", line_json(&insn->line));
		json_object_set_new(json, "inlined", inlines_json(a, insn));
	}
	return json;
}

static json_t *callers_json(const struct md_ann_print *p)
{
	json_t *list = json_array(), *json;

	for (size_t i = 0; i < p->nr_callers; i++) {
		const struct md_ann_caller *c = &p->callers[i];

		json = json_pack("{s:f, s:I}", "percent", 100 * c->share, "samples",
				 (json_int_t)c->samples);
		json_object_set_new(json, "function",
				    c->function ? mp_json_string(c->function) : json_null());
		json_object_set_new(json, "module",
				    c->module ? mp_json_string(c->module) : json_null());
		json_array_append_new(list, json);
	}
	return list;
}

void md_annotation_json(const struct md_ann_print *p, json_t *root)
{
	const struct md_annotation *a = p->a;
	json_t *blocks = json_array(), *insns = json_array();
	char id[80];

	for (uint32_t i = 0; i < a->nr_blocks; i++)
		json_array_append_new(blocks, block_json(a, i));
	for (size_t i = 0; i < a->nr_insns; i++)
		json_array_append_new(insns, insn_json(p, &a->insns[i]));
	json_object_set_new(root, "function", mp_json_string(a->name));
	json_object_set_new(root, "symbol", a->symbol ? mp_json_string(a->symbol) : json_null());
	json_object_set_new(root, "module", mp_json_string(p->path));
	json_object_set_new(root, "build_id", json_string(md_stats_format_id(p->id, id)));
	json_object_set_new(root, "optimised", json_boolean(a->map != NULL));
	json_object_set_new(root, "address", mp_json_address(a->func->vaddr));
	json_object_set_new(root, "samples", json_integer((json_int_t)a->samples));
	json_object_set_new(root, "percent",
			    json_real(p->total ? 100.0 * (double)a->samples / (double)p->total
					       : 0));
	json_object_set_new(root, "total_samples", json_integer((json_int_t)p->total));
	json_object_set_new(root, "problem",
			    a->func->problem ? json_string(mp_problem_name(a->func->problem))
					     : json_null());
	json_object_set_new(root, "callers", callers_json(p));
	json_object_set_new(root, "ranges", ranges_json(a));
	json_object_set_new(root, "blocks", blocks);
	json_object_set_new(root, "instructions", insns);
}
