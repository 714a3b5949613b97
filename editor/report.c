// SPDX-License-Identifier: Apache-2.0
/* report - prints struct me_optimize_report; computes nothing that optimize did not find out. */
#include "editor/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "editor/explain.h"
#include "editor/inplace.h"
#include "libprof/json.h"

enum {
	LEFT_ALONE_SHOWN = 10
};

static const char *const stage_names[ME_NR_STAGES] = {
	[ME_STAGE_READ] = "read",     [ME_STAGE_PROFILE] = "profile", [ME_STAGE_INFER] = "infer",
	[ME_STAGE_LAYOUT] = "layout", [ME_STAGE_EMIT] = "emit",	      [ME_STAGE_DEBUG] = "debug",
	[ME_STAGE_WRITE] = "write",   [ME_STAGE_VERIFY] = "verify",
};

/* What tells the analysis and the verification what an address is. */
static const char *evidence_name(const struct me_optimize_report *r)
{
	return r->relinkable ? "relocations" : "code, loader and data (no relocations)";
}

static double total_s(const double *stage_s)
{
	double sum = 0;

	for (int i = 0; i < ME_NR_STAGES; i++)
		sum += stage_s[i];
	return sum;
}

/* What lies between copies, and between the parts of the new segment. */
static uint64_t padding_bytes(const struct me_emitted *e)
{
	return e->segment_bytes - e->copies_bytes - e->eh_frame_bytes - e->lsda_bytes -
	       e->map_bytes;
}

static uint64_t warm_bytes(const struct me_emitted *e)
{
	return e->text_bytes - e->hot_bytes;
}

/* Functions that were left alone for one reason. */
struct reason {
	const char *why;
	uint32_t nr;
	uint64_t samples;
};

static int compare_reasons(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->nr != y->nr ? (x->nr < y->nr ? 1 : -1) : strcmp(x->why, y->why);
}

/* Ownership: free() the result. Return: NULL where there is none, or no memory. */
static struct reason *add_up_reasons(const struct me_optimize_report *r, size_t *nr)
{
	struct reason *reasons = NULL;

	*nr = 0;
	for (uint32_t i = 0; i < r->nr_left_alone; i++) {
		const struct me_left_alone *l = &r->left_alone[i];
		size_t k = 0;

		while (k < *nr && strcmp(reasons[k].why, l->why))
			k++;
		if (k == *nr) {
			struct reason *grown = realloc(reasons, (k + 1) * sizeof(*grown));

			if (!grown)
				break;
			reasons = grown;
			reasons[(*nr)++] = (struct reason){l->why, 0, 0};
		}
		reasons[k].nr++;
		reasons[k].samples += l->samples;
	}
	if (reasons)
		qsort(reasons, *nr, sizeof(*reasons), compare_reasons);
	return reasons;
}

static void text_left_alone(FILE *out, const struct me_optimize_report *r)
{
	size_t nr;
	struct reason *reasons = add_up_reasons(r, &nr);

	for (size_t i = 0; i < nr; i++)
		fprintf(out, "    %6" PRIu32 "  %s\n", reasons[i].nr, reasons[i].why);
	free(reasons);
	for (uint32_t i = 0; i < r->nr_left_alone && i < LEFT_ALONE_SHOWN; i++) {
		const struct me_left_alone *l = &r->left_alone[i];
		char address[32];

		if (l->samples == 0)
			break;
		snprintf(address, sizeof(address), "%#" PRIx64, l->vaddr);
		fprintf(out, "      %-28s %8" PRIu64 " samples  %s\n", *l->name ? l->name : address,
			l->samples, l->why);
	}
}

static void text_debug(FILE *out, const struct me_optimize_options *options,
		       const struct me_optimize_report *r)
{
	const struct me_debug_report *d = &r->emitted.debug;

	if (d->elsewhere)
		fprintf(out, "  debug      in a separate file, which does not know the copies%s\n",
			options->debug_file ? ": none was found" : " (see --debug-file)");
	else if (options->debug_file && !d->present && !r->debug_file)
		fprintf(out, "  debug      no separate file was found\n");
	if (r->debug_file)
		fprintf(out, "  debug file %s%s%s, %" PRIu64 " -> %" PRIu64 " bytes\n",
			r->debug_file, r->debug_output ? " -> " : " (nothing written)",
			r->debug_output ? r->debug_output : "", r->debug_old_size,
			r->debug_new_size);
	if (!d->present)
		return;
	fprintf(out,
		"  debug      %" PRIu32 " of %" PRIu32 " units have copied code now, %" PRIu32
		" functions, inlined calls and blocks\n",
		d->nr_extended, d->nr_units, d->nr_scopes);
	if (d->nr_scopes_left)
		fprintf(out, "    %6" PRIu32 "  of these are known in the old code only\n",
			d->nr_scopes_left);
	if (d->nr_left)
		fprintf(out, "    %6" PRIu32 "  units left as they were: %s\n", d->nr_left, d->why);
}

static void text_verified(FILE *out, const struct me_verify_report *v)
{
	fprintf(out,
		"  verified   %" PRIu64 " blocks, %" PRIu64 " instructions, %" PRIu64
		" unwind rows, %" PRIu64 " patches\n",
		v->nr_pieces, v->nr_insns, v->nr_unwind_rows, v->nr_patches);
}

static void text_code(FILE *out, const struct me_optimize_report *r)
{
	const struct me_emitted *e = &r->emitted;

	fprintf(out,
		"  code       %" PRIu64 " blocks copied (%" PRIu64 " hot), %" PRIu64
		" bytes (%" PRIu64 " hot)\n",
		r->nr_blocks, r->nr_hot_blocks, e->text_bytes, e->hot_bytes);
	fprintf(out,
		"  branches   %" PRIu64 " inverted, %" PRIu64 " jumps dropped, %" PRIu64 " added\n",
		e->nr_inverted, e->nr_jumps_dropped, e->nr_jumps_added);
	fprintf(out,
		"  old code   %" PRIu32 " patches, %" PRIu64
		" calls and branches led to copies, %" PRIu64 " table entries\n",
		e->patches.nr_patches, e->patches.nr_retargeted, e->patches.nr_table_entries);
	fprintf(out,
		"  pointers   %" PRIu64 " to %" PRIu32 " functions now hold the copy's address\n",
		e->patches.nr_pointers, e->nr_redirected);
	text_verified(out, &r->verified);
	fprintf(out,
		"  growth     hot %" PRIu64 ", warm %" PRIu64 ", unwind tables %" PRIu64
		", exception tables %" PRIu64 ", map %" PRIu64 " (%.1f a block); of all %" PRIu64
		" bytes %" PRIu64 " are padding\n",
		e->hot_bytes, warm_bytes(e), e->eh_frame_bytes, e->lsda_bytes, e->map_bytes,
		r->nr_blocks ? (double)e->map_bytes / (double)r->nr_blocks : 0, e->segment_bytes,
		padding_bytes(e));
	fprintf(out,
		"  size       %" PRIu64 " -> %" PRIu64 " bytes; program header taken from %s\n",
		r->old_size, r->new_size, e->slot_price ? e->slot_price : "nothing");
	if (r->new_holes)
		fprintf(out,
			"             %" PRIu64
			" bytes of it are a hole, which takes no space on disk (cp "
			"--sparse=always keeps it)\n",
			r->new_holes);
}

static void text_counting(FILE *out, const struct me_optimize_options *options,
			  const struct me_optimize_report *r)
{
	const struct me_instrument_report *i = &r->instrumented;

	fprintf(out,
		"  counts     %" PRIu32 " functions, %" PRIu32 " edges by %" PRIu32
		" counters%s (%" PRIu32 " fallen through)",
		i->nr_funcs, i->nr_edges, i->nr_counters, r->atomic ? ", atomic" : "",
		i->nr_inline);
	if (i->flow > 0 && !options->all)
		fprintf(out, "; of what flows %.1f %% is counted", 100 * i->counted / i->flow);
	fprintf(out, "\n  counted in %s\n", options->counting.path);
}

static void text_numbers(FILE *out, const struct me_optimize_options *options,
			 const struct me_number_report *n)
{
	fprintf(out,
		"  paths      %" PRIu32 " functions, %" PRIu32 " of %" PRIu32
		" places where ways meet told by %" PRIu32 " stubs (%" PRIu32 " fallen through)",
		n->nr_funcs, n->nr_told, n->nr_merges, n->nr_stubs, n->nr_inline);
	if (n->merges > 0 && n->insns > 0 && !options->all)
		fprintf(out, "; by the profile %.1f %% of arrivals, for %.2f %% more instructions",
			100 * n->told / n->merges, 100 * n->stubs / n->insns);
	fprintf(out, "\n");
	if (!options->counting.polls)
		return;
	fprintf(out, "  polls      %" PRIu32 " of %" PRIu32 " places where paths end", n->nr_polls,
		n->nr_ends);
	if (n->ends > 0 && !options->all)
		fprintf(out, "; by the profile %.1f %% of the paths", 100 * n->polls / n->ends);
	fprintf(out, "\n  asked in %s\n", options->counting.path);
}

static void text_evidence(FILE *out, const struct me_optimize_report *r)
{
	const char *of = r->samples ? "them" : "the transfers";

	fprintf(out, "  samples    %" PRIu64 ", ", r->samples);
	if (r->transfers)
		fprintf(out, "and %" PRIu64 " transfers of control; ", r->transfers);
	if (r->samples && r->transfers)
		of = "the samples";
	fprintf(out, "%.1f %% of %s in code that moves\n", 100 * r->share_moved, of);
	if (r->paths)
		fprintf(out, "  followed   %" PRIu64 " paths, of %" PRIu32 " functions\n", r->paths,
			r->inference.nr_by_paths);
}

static void text_in_place(FILE *out, const char *input, const struct me_inplace_report *done)
{
	const char *what = "nothing replaced";

	if (done->backup)
		what = done->again ? "optimised anew in place" : "optimised in place";
	else if (done->unchanged)
		what = "left as it is, since the new version is the same";
	fprintf(out, "%s: %s\n", input, what);
	if (done->through_link)
		fprintf(out, "  link to    %s\n", done->path);
	if (done->backup)
		fprintf(out, "  original   kept in %s\n", done->backup);
}

static void text_layout(FILE *out, const struct me_layout_options *layout)
{
	fprintf(out, "  layout     blocks by %s, functions by %s",
		me_order_name(layout->block_order), mp_order_name(layout->function_order));
	if (layout->line_log2)
		fprintf(out, ", runs in lines of %u bytes", 1u << layout->line_log2);
	fprintf(out, "%s\n", layout->huge_pages ? ", huge pages" : "");
}

/* Of counts that were counted there is no doubt, and no interval. */
static void text_prediction(FILE *out, const struct me_prediction *p)
{
	fprintf(out, "  predicted  taken branches %+.1f %%", 100.0 * (p->ratio - 1.0));
	if (p->least < p->most)
		fprintf(out, " (%+.0f to %+.0f), at work like what was sampled",
			100.0 * (p->least - 1.0), 100.0 * (p->most - 1.0));
	fprintf(out, "\n");
}

void me_report_text(FILE *out, const struct me_optimize_options *options,
		    const struct me_optimize_report *r)
{
	if (r->in_place)
		text_in_place(out, options->input, r->in_place);
	else
		fprintf(out, "%s%s%s\n", options->input, options->output ? " -> " : "",
			options->output ? options->output : " (nothing written)");
	fprintf(out, "  build-id   %s\n", *r->build_id ? r->build_id : "none");
	if (!options->all)
		text_evidence(out, r);
	fprintf(out, "  evidence   %s\n", evidence_name(r));
	fprintf(out,
		"  functions  %" PRIu32 " in the file, %" PRIu32 " considered, %" PRIu32
		" moved, %" PRIu32 " left alone:\n",
		r->nr_funcs, r->nr_considered, r->nr_moved, r->nr_considered - r->nr_moved);
	if (r->nr_not_worth)
		fprintf(out, "    %6" PRIu32 "  too little evidence that they run\n",
			r->nr_not_worth);
	text_left_alone(out, r);
	if (!options->all)
		text_layout(out, &options->layout);
	if (options->stress)
		fprintf(out, "  layout     for tests, with seed %" PRIu64 "\n",
			options->stress_seed);
	if (r->has_prediction)
		text_prediction(out, &r->prediction);
	if (r->inference.nr_gave_up)
		fprintf(out,
			"  inference  %" PRIu32 " of %" PRIu32
			" functions by length scaling alone\n",
			r->inference.nr_gave_up, r->inference.nr_funcs);
	if (r->new_size) {
		text_code(out, r);
		if (options->counting.edges)
			text_counting(out, options, r);
		if (options->counting.paths)
			text_numbers(out, options, &r->numbered);
		text_debug(out, options, r);
	}
	fprintf(out, "  cost       %.3f s of processors (", total_s(r->stage_cpu_s));
	for (int i = 0; i < ME_NR_STAGES; i++)
		fprintf(out, "%s%s %.3f", i ? ", " : "", stage_names[i], r->stage_cpu_s[i]);
	fprintf(out, "), %.3f s in all, %.1f MiB\n", total_s(r->stage_s),
		(double)r->peak_rss_bytes / (1 << 20));
	if (options->explain && r->new_size)
		me_explain_text(out, &r->verified, r->relinkable);
}

void me_report_train(FILE *out, const struct me_train_options *options,
		     const struct me_train_report *r, bool written)
{
	struct me_optimize_options o = options->optimize;

	o.input = r->file;
	o.output = written ? options->output : NULL;
	me_report_text(out, &o, &r->final);
	if (r->sampled)
		fprintf(out, "  trained    sampled, then counted in %" PRIu32 " functions",
			r->counting.instrumented.nr_funcs);
	else
		fprintf(out, "  trained    not sampled (%s), counted in %" PRIu32 " functions",
			r->why, r->counting.instrumented.nr_funcs);
	if (r->plain_s > 0)
		fprintf(out, "; that run took %.2f times the processor time",
			r->counting_s / r->plain_s);
	fputc('\n', out);
}

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

static json_t *json_seconds(const double *stage_s)
{
	json_t *seconds = json_object();

	for (int i = 0; i < ME_NR_STAGES; i++)
		json_object_set_new(seconds, stage_names[i], json_real(stage_s[i]));
	json_object_set_new(seconds, "total", json_real(total_s(stage_s)));
	return seconds;
}

static json_t *json_growth(const struct me_emitted *e)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "hot", (json_int_t)e->hot_bytes,
			 "warm", (json_int_t)warm_bytes(e), "unwind", (json_int_t)e->eh_frame_bytes,
			 "exceptions", (json_int_t)e->lsda_bytes, "map", (json_int_t)e->map_bytes,
			 "padding", (json_int_t)padding_bytes(e), "segment",
			 (json_int_t)e->segment_bytes);
}

static json_t *json_functions(const struct me_optimize_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "in_file", (json_int_t)r->nr_funcs,
			 "considered", (json_int_t)r->nr_considered, "moved",
			 (json_int_t)r->nr_moved, "too_little_evidence",
			 (json_int_t)r->nr_not_worth, "left_alone", json_left_alone(r));
}

static json_t *json_code(const struct me_optimize_report *r)
{
	const struct me_emitted *e = &r->emitted;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pointers",
			 (json_int_t)e->patches.nr_pointers, "functions_redirected",
			 (json_int_t)e->nr_redirected, "blocks", (json_int_t)r->nr_blocks,
			 "hot_blocks", (json_int_t)r->nr_hot_blocks, "bytes",
			 (json_int_t)e->text_bytes, "hot_bytes", (json_int_t)e->hot_bytes,
			 "branches_inverted", (json_int_t)e->nr_inverted, "jumps_dropped",
			 (json_int_t)e->nr_jumps_dropped, "jumps_added",
			 (json_int_t)e->nr_jumps_added, "patches",
			 (json_int_t)e->patches.nr_patches, "retargeted",
			 (json_int_t)e->patches.nr_retargeted, "table_entries",
			 (json_int_t)e->patches.nr_table_entries);
}

static json_t *json_counting(const struct me_optimize_options *options,
			     const struct me_optimize_report *r)
{
	const struct me_instrument_report *i = &r->instrumented;

	return json_pack("{s:I, s:I, s:I, s:I, s:b, s:o}", "functions", (json_int_t)i->nr_funcs,
			 "edges", (json_int_t)i->nr_edges, "counters", (json_int_t)i->nr_counters,
			 "fallen_through", (json_int_t)i->nr_inline, "atomic", r->atomic, "path",
			 mp_json_string(options->counting.path));
}

static json_t *json_numbers(const struct me_optimize_options *options,
			    const struct me_number_report *n)
{
	json_t *json = json_pack("{s:I, s:I, s:I, s:I, s:I}", "functions", (json_int_t)n->nr_funcs,
				 "merges", (json_int_t)n->nr_merges, "merges_told",
				 (json_int_t)n->nr_told, "stubs", (json_int_t)n->nr_stubs,
				 "fallen_through", (json_int_t)n->nr_inline);

	if (json && n->merges > 0 && n->insns > 0 && !options->all) {
		json_object_set_new(json, "share_told", json_real(n->told / n->merges));
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

static json_t *json_debug(const struct me_optimize_report *r)
{
	const struct me_debug_report *d = &r->emitted.debug;

	return json_pack("{s:o, s:o, s:I, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:I}", "file",
			 mp_json_string(r->debug_file), "output", mp_json_string(r->debug_output),
			 "size_before", (json_int_t)r->debug_old_size, "size_after",
			 (json_int_t)r->debug_new_size, "present", d->present, "separate_file",
			 d->elsewhere, "units", (json_int_t)d->nr_units, "units_extended",
			 (json_int_t)d->nr_extended, "units_left", (json_int_t)d->nr_left, "scopes",
			 (json_int_t)d->nr_scopes, "scopes_left", (json_int_t)d->nr_scopes_left);
}

static void json_prediction(json_t *root, const struct me_prediction *p)
{
	json_object_set_new(root, "predicted_taken_ratio", json_real(p->ratio));
	json_object_set_new(root, "predicted_taken_least", json_real(p->least));
	json_object_set_new(root, "predicted_taken_most", json_real(p->most));
}

static json_t *json_layout(const struct me_layout_options *layout)
{
	return json_pack("{s:s, s:s, s:i, s:b}", "block_order", me_order_name(layout->block_order),
			 "function_order", mp_order_name(layout->function_order), "fetch_line",
			 layout->line_log2 ? 1 << layout->line_log2 : 0, "huge_pages",
			 layout->huge_pages);
}

static json_t *json_verified(const struct me_verify_report *v)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "blocks", (json_int_t)v->nr_pieces,
			 "instructions", (json_int_t)v->nr_insns, "patches",
			 (json_int_t)v->nr_patches, "retargeted", (json_int_t)v->nr_retargeted,
			 "table_entries", (json_int_t)v->nr_table_entries, "unwind_rows",
			 (json_int_t)v->nr_unwind_rows, "landing_pads",
			 (json_int_t)v->nr_landing_pads);
}

static json_t *json_in_place(const struct me_inplace_report *done)
{
	return json_pack("{s:o, s:b, s:b, s:o}", "path", mp_json_string(done->path), "replaced",
			 done->backup != NULL, "again", done->again, "backup",
			 mp_json_string(done->backup));
}

/* Takes @root. */
static int json_print(json_t *root, FILE *out)
{
	int rc = root ? 0 : -ENOMEM;

	if (!rc && (json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF))
		rc = -EIO;
	json_decref(root);
	return rc;
}

int me_report_json(FILE *out, const struct me_optimize_options *options,
		   const struct me_optimize_report *r)
{
	json_t *root = json_pack(
		"{s:i, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "schema",
		ME_REPORT_SCHEMA, "command", "optimize", "input", mp_json_string(options->input),
		"output", mp_json_string(options->output), "build_id", r->build_id, "functions",
		json_functions(r), "code", json_code(r), "verified", json_verified(&r->verified),
		"size_before", (json_int_t)r->old_size, "size_after", (json_int_t)r->new_size,
		"size_hole", (json_int_t)r->new_holes, "seconds", json_seconds(r->stage_s),
		"peak_rss_bytes", (json_int_t)r->peak_rss_bytes);

	if (!root)
		return -ENOMEM;
	if (!options->all) {
		json_object_set_new(root, "samples", json_integer((json_int_t)r->samples));
		json_object_set_new(root, "samples_moved",
				    json_integer((json_int_t)r->samples_moved));
		json_object_set_new(root, "layout", json_layout(&options->layout));
		json_object_set_new(root, "transfers", json_integer((json_int_t)r->transfers));
		json_object_set_new(root, "sampled_paths", json_integer((json_int_t)r->paths));
		json_object_set_new(root, "sampled_paths_strange",
				    json_integer((json_int_t)r->paths_strange));
		json_object_set_new(root, "share_moved", json_real(r->share_moved));
	}
	if (options->stress)
		json_object_set_new(root, "stress_seed",
				    json_integer((json_int_t)options->stress_seed));
	if (r->new_size)
		json_object_set_new(root, "debug", json_debug(r));
	if (options->counting.edges)
		json_object_set_new(root, "counting", json_counting(options, r));
	if (options->counting.paths)
		json_object_set_new(root, "paths", json_numbers(options, &r->numbered));
	json_object_set_new(root, "evidence", json_string(evidence_name(r)));
	json_object_set_new(root, "cpu_seconds", json_seconds(r->stage_cpu_s));
	json_object_set_new(root, "growth", json_growth(&r->emitted));
	if (r->has_prediction)
		json_prediction(root, &r->prediction);
	if (options->explain && r->new_size)
		json_object_set_new(root, "explanation",
				    me_explain_json(&r->verified, r->relinkable));
	if (r->in_place)
		json_object_set_new(root, "in_place", json_in_place(r->in_place));
	return json_print(root, out);
}

int me_report_verified(FILE *out, bool json, const char *original,
		       const struct me_optimize_options *options,
		       const struct me_verify_report *verified, bool relinkable)
{
	if (json) {
		json_t *root = json_pack("{s:i, s:s, s:o, s:o, s:o}", "schema", ME_REPORT_SCHEMA,
					 "command", "verify", "input",
					 mp_json_string(options->input), "original",
					 mp_json_string(original), "verified",
					 json_verified(verified));

		if (root && options->explain)
			json_object_set_new(root, "explanation",
					    me_explain_json(verified, relinkable));
		return json_print(root, out);
	}
	fprintf(out, "%s: made of %s\n", options->input, original);
	text_verified(out, verified);
	if (options->explain)
		me_explain_text(out, verified, relinkable);
	return ferror(out) ? -EIO : 0;
}

int me_report_restored(FILE *out, bool json, const char *input,
		       const struct me_inplace_report *done)
{
	if (json)
		return json_print(json_pack("{s:i, s:s, s:o, s:o, s:o}", "schema", ME_REPORT_SCHEMA,
					    "command", "restore", "input", mp_json_string(input),
					    "restored", mp_json_string(done->path), "backup",
					    mp_json_string(done->backup)),
				  out);
	fprintf(out, "%s: restored\n", input);
	if (done->through_link)
		fprintf(out, "  link to    %s\n", done->path);
	fprintf(out, "  from       %s\n", done->backup);
	return ferror(out) ? -EIO : 0;
}
