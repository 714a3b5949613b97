// SPDX-License-Identifier: Apache-2.0
/* report_json - the report in JSON; Documentation/json.md describes the fields. */
#include "editor/cli/report_private.h"

#include <errno.h>

#include "editor/cli/explain.h"
#include "libprof/cli/json.h"

static json_t *json_left_alone(const struct me_optimize_report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->nr_left_alone; i++)
		json_array_append_new(list,
				      json_pack("{s:o, s:I, s:I, s:s}", "function",
						mp_json_string(r->left_alone[i].name), "vaddr",
						(json_int_t)r->left_alone[i].vaddr, "samples",
						(json_int_t)r->left_alone[i].samples, "why",
						r->left_alone[i].why));
	return list;
}

static json_t *json_left_out(const struct me_optimize_report *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->nr_left_out; i++)
		json_array_append_new(list, json_pack("{s:o, s:I, s:s}", "function",
						      mp_json_string(r->left_out[i].name), "vaddr",
						      (json_int_t)r->left_out[i].refused.vaddr,
						      "why", r->left_out[i].refused.why));
	return list;
}

static json_t *json_unowned(const struct me_unowned_samples_list *unowned)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < unowned->nr; i++) {
		const struct me_unowned_samples *o = &unowned->list[i];

		json_array_append_new(list,
				      json_pack("{s:I, s:I, s:I, s:o, s:I, s:s}", "vaddr",
						(json_int_t)o->vaddr, "size", (json_int_t)o->size,
						"samples", (json_int_t)o->samples, "near",
						mp_json_string(o->near), "offset",
						(json_int_t)o->offset, "why", ME_WHY_UNOWNED));
	}
	return list;
}

static json_t *json_seconds(const double *stage_s)
{
	json_t *seconds = json_object();

	for (int i = 0; i < ME_NR_STAGES; i++)
		json_object_set_new(seconds, me_stage_names[i], json_real(stage_s[i]));
	json_object_set_new(seconds, "total", json_real(me_report_total_s(stage_s)));
	return seconds;
}

static json_t *json_growth(const struct me_emitted *e)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "hot", (json_int_t)e->hot_bytes,
			 "warm", (json_int_t)me_report_warm(e), "unwind",
			 (json_int_t)e->eh_frame_bytes, "exceptions", (json_int_t)e->lsda_bytes,
			 "map", (json_int_t)e->map_bytes, "padding",
			 (json_int_t)me_report_padding(e), "segment", (json_int_t)e->segment_bytes);
}

static json_t *json_functions(const struct me_optimize_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "code_bytes",
			 (json_int_t)r->code_bytes, "code_described", (json_int_t)r->code_described,
			 "in_file", (json_int_t)r->nr_funcs, "considered",
			 (json_int_t)r->nr_considered, "moved", (json_int_t)r->nr_moved,
			 "too_little_evidence", (json_int_t)r->nr_not_worth, "left_alone",
			 json_left_alone(r), "refused_copies", json_left_out(r));
}

static json_t *json_code(const struct me_optimize_report *r)
{
	const struct me_emitted *e = &r->emitted;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"pointers", (json_int_t)e->patches.nr_pointers, "functions_redirected",
		(json_int_t)e->nr_redirected, "blocks", (json_int_t)r->nr_blocks, "hot_blocks",
		(json_int_t)r->nr_hot_blocks, "bytes", (json_int_t)e->text_bytes, "hot_bytes",
		(json_int_t)e->hot_bytes, "branches_inverted", (json_int_t)e->nr_inverted,
		"jumps_dropped", (json_int_t)e->nr_jumps_dropped, "jumps_added",
		(json_int_t)e->nr_jumps_added, "patches", (json_int_t)e->patches.nr_patches,
		"entries_unpatched", (json_int_t)e->patches.nr_entries_open, "retargeted",
		(json_int_t)e->patches.nr_retargeted, "table_entries",
		(json_int_t)e->patches.nr_table_entries, "via_slot", (json_int_t)e->nr_via_slot,
		"inlined", (json_int_t)e->nr_inlined);
}

static json_t *json_counting(const struct me_optimize_options *options,
			     const struct me_optimize_report *r)
{
	const struct me_instrument_report *i = &r->instrumented;

	return json_pack("{s:I, s:I, s:I, s:I, s:b, s:b, s:o}", "functions",
			 (json_int_t)i->nr_funcs, "edges", (json_int_t)i->nr_edges, "counters",
			 (json_int_t)i->nr_counters, "fallen_through", (json_int_t)i->nr_inline,
			 "atomic", r->counters == ME_COUNTERS_ATOMIC, "threads",
			 r->counters == ME_COUNTERS_THREADS, "path",
			 mp_json_string(options->counting.path));
}

static json_t *json_meter(const struct me_optimize_options *options,
			  const struct me_optimize_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:b, s:o}", "places", (json_int_t)r->metered.nr_places,
			 "functions", (json_int_t)r->metered.nr_funcs, "fallen_through",
			 (json_int_t)r->metered.nr_inline, "atomic",
			 r->counters == ME_COUNTERS_ATOMIC, "path",
			 mp_json_string(options->counting.path));
}

static json_t *json_numbers(const struct me_optimize_options *options,
			    const struct me_number_report *n)
{
	json_t *json = json_pack("{s:I, s:I, s:I, s:I, s:I}", "functions", (json_int_t)n->nr_funcs,
				 "merges", (json_int_t)n->nr_merges, "merges_told",
				 (json_int_t)n->nr_told_apart, "stubs", (json_int_t)n->nr_stubs,
				 "fallen_through", (json_int_t)n->nr_inline);

	if (json && n->merges > 0 && n->insns > 0 && !options->all) {
		json_object_set_new(json, "share_told", json_real(n->told_apart / n->merges));
		json_object_set_new(json, "more_instructions", json_real(n->stubs / n->insns));
	}
	if (json && options->counting.polls) {
		json_object_set_new(json, "polls", json_integer(n->nr_polls));
		json_object_set_new(json, "ends", json_integer(n->nr_ends));
		json_object_set_new(json, "path", mp_json_string(options->counting.path));
		if (n->ends > 0 && !options->all)
			json_object_set_new(json, "share_polled", json_real(n->polls / n->ends));
	}
	return json;
}

static json_t *json_clock(const struct me_optimize_options *options,
			  const struct me_call_clock_report *c)
{
	json_t *json = json_pack("{s:I, s:I, s:o}", "functions", (json_int_t)c->nr_funcs, "without",
				 (json_int_t)c->nr_without, "path",
				 mp_json_string(options->counting.path));

	if (json && c->entries > 0 && c->insns > 0 && !options->all) {
		json_object_set_new(json, "share_counted",
				    json_real(c->entries / (c->entries + c->without)));
		json_object_set_new(json, "more_instructions",
				    json_real(2 * c->entries / c->insns));
	}
	return json;
}

static json_t *json_points(const struct me_loop_report *loops)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < loops->nr_listed; i++) {
		const struct me_loop_reported *f = &loops->list[i];
		json_t *points = json_array();

		for (uint32_t p = 0; p < f->nr_points; p++)
			json_array_append_new(
				points, json_pack("{s:o, s:I, s:I}", "vaddr",
						  json_integer((json_int_t)f->points[p].vaddr),
						  "rounds", (json_int_t)f->points[p].rounds,
						  "distance", (json_int_t)f->points[p].distance));
		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:o, s:o}", "name", mp_json_string(f->name), "vaddr",
				  json_integer((json_int_t)f->vaddr), "points", points, "why_none",
				  f->why_none ? json_string(f->why_none) : json_null()));
	}
	return array;
}

static json_t *json_not_audited(const struct me_versions_report *v)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < v->nr_left_out; i++) {
		const struct me_versions_left_out *left = &v->left_out[i];

		json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:s, s:f}", "name",
						      mp_json_string(left->name), "address",
						      (json_int_t)left->vaddr, "samples",
						      (json_int_t)left->samples, "why", left->why,
						      "more_instructions", left->cost));
	}
	return list;
}

static json_t *json_audits(const struct me_optimize_options *options,
			   const struct me_versions_report *v, const struct me_loop_report *loops)
{
	json_t *json = json_pack("{s:I, s:I, s:I, s:o}", "functions", (json_int_t)v->nr_funcs,
				 "fixed", (json_int_t)v->nr_fixed, "costly",
				 (json_int_t)v->nr_costly, "path",
				 mp_json_string(options->counting.path));

	if (json)
		json_object_set_new(json, "left_out", json_not_audited(v));
	if (json && !options->all) {
		json_object_set_new(json, "share", json_real(v->share));
		json_object_set_new(json, "share_costly", json_real(v->share_costly));
		json_object_set_new(json, "more_instructions", json_real(v->cost + loops->cost));
		json_object_set_new(json, "more_instructions_decided", json_real(v->decided_cost));
	}
	json_object_set_new(json, "points", json_integer(loops->nr_points));
	json_object_set_new(json, "loops", json_points(loops));
	return json;
}

static json_t *json_debug(const struct me_optimize_report *r)
{
	const struct me_debug_report *d = &r->emitted.debug;

	return json_pack("{s:o, s:o, s:I, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			 "file", mp_json_string(r->debug_file), "output",
			 mp_json_string(r->debug_output), "size_before",
			 (json_int_t)r->debug_old_size, "size_after", (json_int_t)r->debug_new_size,
			 "present", d->present, "separate_file", d->elsewhere, "units",
			 (json_int_t)d->nr_units, "units_extended", (json_int_t)d->nr_extended,
			 "units_left", (json_int_t)d->nr_left, "scopes", (json_int_t)d->nr_scopes,
			 "scopes_left", (json_int_t)d->nr_scopes_left, "inlined",
			 (json_int_t)d->nr_inlined, "inlined_left", (json_int_t)d->nr_inlined_left);
}

static void json_prediction(json_t *root, const struct me_prediction *p)
{
	json_object_set_new(root, "predicted_taken_ratio", json_real(p->ratio));
	json_object_set_new(root, "predicted_taken_least", json_real(p->least));
	json_object_set_new(root, "predicted_taken_most", json_real(p->most));
}

static json_t *json_layout(const struct me_layout_options *layout, enum mp_order functions)
{
	return json_pack("{s:s, s:s, s:i, s:b, s:b, s:b}", "block_order",
			 me_order_name(layout->block_order), "function_order",
			 mp_order_name(functions), "fetch_line",
			 layout->line_log2 ? 1 << layout->line_log2 : 0, "huge_pages",
			 layout->huge_pages, "slots", layout->slots, "inline",
			 layout->inline_leaves);
}

static json_t *json_stale(const struct me_stale_report *stale)
{
	const struct mp_stale_stats *s = &stale->stats;
	json_t *by = json_object();

	if (!stale->used) {
		json_decref(by);
		return json_null();
	}
	for (int how = 0; how < MP_NR_STALE_HOW; how++)
		json_object_set_new(by, mp_stale_how_name(how), json_integer(s->nr_by[how]));
	return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "build_id",
			 stale->build_id, "path", mp_json_string(stale->path), "own_samples",
			 (json_int_t)stale->own_samples, "samples", (json_int_t)s->samples,
			 "samples_matched", (json_int_t)s->samples_matched, "transfers",
			 (json_int_t)s->transfers, "transfers_matched",
			 (json_int_t)s->transfers_matched, "functions", (json_int_t)s->nr_funcs,
			 "functions_matched", (json_int_t)s->nr_funcs_matched, "blocks",
			 (json_int_t)s->nr_blocks, "blocks_matched",
			 (json_int_t)s->nr_blocks_matched, "functions_by", by);
}

json_t *me_report_json_verified(const struct me_verify_report *v)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "blocks",
			 (json_int_t)v->nr_pieces, "instructions", (json_int_t)v->nr_insns,
			 "via_slot", (json_int_t)v->nr_via_slot, "inlined",
			 (json_int_t)v->nr_inlined, "patches", (json_int_t)v->nr_patches,
			 "retargeted", (json_int_t)v->nr_retargeted, "table_entries",
			 (json_int_t)v->nr_table_entries, "unwind_rows",
			 (json_int_t)v->nr_unwind_rows, "landing_pads",
			 (json_int_t)v->nr_landing_pads);
}

static json_t *json_in_place(const struct me_inplace_report *done)
{
	return json_pack("{s:o, s:b, s:b, s:o, s:b, s:I}", "path", mp_json_string(done->path),
			 "replaced", done->backup != NULL, "again", done->was_output, "backup",
			 mp_json_string(done->backup), "dry_run", done->dry_run, "other_names",
			 (json_int_t)done->nr_other_names);
}

int me_report_json_print(json_t *root, FILE *out)
{
	int rc = mp_json_is_whole(root) ? 0 : -ENOMEM;

	if (!rc && (json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF))
		rc = -EIO;
	json_decref(root);
	return rc;
}

static json_t *json_markers(const struct me_markers_report *m)
{
	json_t *stay = json_array();

	for (int i = ME_SLICE_GOES + 1; i < ME_NR_SLICE_STAYS; i++)
		if (m->stays[i])
			json_array_append_new(stay,
					      json_pack("{s:s, s:I}", "why", me_slice_stay_names[i],
							"accesses", (json_int_t)m->stays[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "markers", (json_int_t)m->nr_markers,
			 "accesses", (json_int_t)m->nr_accesses, "left_out",
			 (json_int_t)m->nr_removed, "instructions", (json_int_t)m->nr_insns,
			 "not_copied", (json_int_t)m->nr_not_copied, "stay", stay);
}

int me_report_json(FILE *out, const struct me_optimize_options *options,
		   const struct me_optimize_report *r)
{
	json_t *root = json_pack(
		"{s:i, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "schema",
		ME_REPORT_SCHEMA, "command", "optimize", "input", mp_json_string(options->input),
		"output", mp_json_string(options->output), "build_id", r->build_id, "functions",
		json_functions(r), "code", json_code(r), "verified",
		me_report_json_verified(&r->verified), "size_before", (json_int_t)r->old_size,
		"size_after", (json_int_t)r->new_size, "size_hole", (json_int_t)r->new_holes,
		"seconds", json_seconds(r->stage_s), "peak_rss_bytes",
		(json_int_t)r->peak_rss_bytes);

	if (!root)
		return -ENOMEM;
	if (!options->all) {
		json_object_set_new(root, "samples", json_integer((json_int_t)r->samples));
		json_object_set_new(root, "samples_moved",
				    json_integer((json_int_t)r->samples_moved));
		json_object_set_new(root, "layout",
				    json_layout(&options->layout, r->function_order));
		json_object_set_new(root, "transfers", json_integer((json_int_t)r->transfers));
		json_object_set_new(root, "ways", json_integer((json_int_t)r->ways));
		json_object_set_new(root, "sampled_paths", json_integer((json_int_t)r->paths));
		json_object_set_new(root, "sampled_paths_strange",
				    json_integer((json_int_t)r->paths_strange));
		json_object_set_new(root, "share_moved", json_real(r->share_moved));
		json_object_set_new(root, "outside", json_unowned(&r->unowned));
		json_object_set_new(root, "stale", json_stale(&r->stale));
	}
	if (options->stress)
		json_object_set_new(root, "stress_seed",
				    json_integer((json_int_t)options->stress_seed));
	if (options->stress_inline)
		json_object_set_new(root, "stress_inline_seed",
				    json_integer((json_int_t)options->stress_inline_seed));
	if (options->adjust_words.nr || options->nr_adjusts || options->audited_db)
		json_object_set_new(root, "adjusted", me_report_json_adjusted(r));
	if (options->audited_db)
		json_object_set_new(root, "decided", me_report_json_audited(r));
	if (r->new_size)
		json_object_set_new(root, "debug", json_debug(r));
	if (options->counting.edges)
		json_object_set_new(root, "counting", json_counting(options, r));
	if (options->counting.meter)
		json_object_set_new(root, "meter", json_meter(options, r));
	if (options->counting.paths)
		json_object_set_new(root, "paths", json_numbers(options, &r->numbered));
	if (options->counting.calls)
		json_object_set_new(root, "calls", json_clock(options, &r->clock));
	if (options->counting.audit)
		json_object_set_new(root, "audits", json_audits(options, &r->audited, &r->loops));
	if (options->remove_markers)
		json_object_set_new(root, "markers", json_markers(&r->markers));
	json_object_set_new(root, "attempts", json_integer(r->nr_attempts));
	json_object_set_new(root, "evidence", json_string(me_report_evidence(r)));
	json_object_set_new(root, "cpu_seconds", json_seconds(r->stage_cpu_s));
	json_object_set_new(root, "growth", json_growth(&r->emitted));
	if (r->has_prediction)
		json_prediction(root, &r->prediction);
	if (options->explain && r->new_size)
		json_object_set_new(root, "explanation",
				    me_explain_json(&r->verified, r->relinkable));
	if (r->in_place)
		json_object_set_new(root, "in_place", json_in_place(r->in_place));
	return me_report_json_print(root, out);
}
