// SPDX-License-Identifier: Apache-2.0
/* report_text - the report in text. Prints only what optimize found out. */
#include "editor/cli/report_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/explain.h"
#include "editor/train/train_advice.h"
#include "libprof/base/text.h"

#define NAME_WIDTH 28 /* columns of a function's name */

enum {
	LEFT_ALONE_SHOWN = 10
};

/* Functions that were left alone for the same reason. */
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

/* *@out: NULL: no reasons. Return: false: out of memory. Ownership: free(*@out). */
static bool add_up_reasons(const struct me_optimize_report *r, struct reason **out, size_t *nr)
{
	struct reason *reasons = NULL;

	*out = NULL;
	*nr = 0;
	for (uint32_t i = 0; i < r->nr_left_alone; i++) {
		const struct me_left_alone *l = &r->left_alone[i];
		size_t k = 0;

		while (k < *nr && strcmp(reasons[k].why, l->why))
			k++;
		if (k == *nr) {
			struct reason *grown = realloc(reasons, (k + 1) * sizeof(*grown));

			if (!grown) {
				free(reasons);
				return false;
			}
			reasons = grown;
			reasons[(*nr)++] = (struct reason){l->why, 0, 0};
		}
		reasons[k].nr++;
		reasons[k].samples += l->samples;
	}
	if (reasons)
		qsort(reasons, *nr, sizeof(*reasons), compare_reasons);
	*out = reasons;
	return true;
}

/* Prints a function that was left alone, or left out of the audited ones, and why. */
static void text_left(FILE *out, const char *name, uint64_t vaddr, uint64_t nr, const char *unit,
		      const char *why)
{
	char address[32];
	size_t width;

	snprintf(address, sizeof(address), "%#" PRIx64, vaddr);
	fputs("      ", out);
	width = mp_text_put(out, *name ? name : address);
	fprintf(out, "%*s %8" PRIu64 " %s  %s\n",
		width < NAME_WIDTH ? (int)(NAME_WIDTH - width) : 0, "", nr, unit, why);
}

static void text_left_alone(FILE *out, const struct me_optimize_report *r)
{
	struct reason *reasons;
	size_t nr;

	if (!add_up_reasons(r, &reasons, &nr)) {
		fputs("            out of memory for the reasons\n", out);
		return;
	}
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "    %6" PRIu32 "  %s\n", reasons[i].nr, reasons[i].why);
	free(reasons);
	for (uint32_t i = 0; i < r->nr_left_alone && i < LEFT_ALONE_SHOWN; i++) {
		const struct me_left_alone *l = &r->left_alone[i];

		if (l->samples == 0)
			break;
		text_left(out, l->name, l->vaddr, l->samples,
			  r->exact && !r->counts ? "counts" : "samples", l->why);
	}
}

/* Padding between functions has no unwind information either. */
static void text_undescribed(FILE *out, const struct me_optimize_report *r)
{
	/* Start-up files alone are as much. */
	if (me_lacks_unwind(r) && r->code_bytes - r->code_described > 4096)
		fprintf(out,
			"  bounds     %.0f %% of the code has no unwind information (.eh_frame), which tells "
			"where functions begin and end\n",
			100.0 * (1.0 - (double)r->code_described / (double)r->code_bytes));
}

static void text_left_out(FILE *out, const struct me_optimize_report *r)
{
	if (!r->nr_left_out)
		return;
	fprintf(out,
		"  refused    the copies of %" PRIu32
		" functions, in earlier attempts; these functions "
		"stay:\n",
		r->nr_left_out);
	for (uint32_t i = 0; i < r->nr_left_out && i < LEFT_ALONE_SHOWN; i++) {
		const struct me_left_out *l = &r->left_out[i];

		if (*l->name)
			me_report_line(out, "      ", l->name, "");
		else
			fprintf(out, "      %#" PRIx64, l->refused.vaddr);
		fprintf(out, "  %s\n", l->refused.why);
	}
}

static void text_unowned(FILE *out, const struct me_unowned_samples_list *unowned)
{
	if (!unowned->nr)
		return;
	fprintf(out, "  outside    %" PRIu64 " samples in %" PRIu32 " stretches of code that %s:\n",
		unowned->samples, unowned->nr, ME_WHY_UNOWNED);
	for (uint32_t i = 0; i < unowned->nr && i < LEFT_ALONE_SHOWN; i++) {
		const struct me_unowned_samples *o = &unowned->list[i];

		fprintf(out, "      0x%-12" PRIx64 " %6" PRIu64 " bytes %8" PRIu64 " samples",
			o->vaddr, o->size, o->samples);
		if (o->near) {
			fputs("  ", out);
			mp_text_put(out, o->near);
		}
		if (o->near && o->offset)
			fprintf(out, "+0x%" PRIx64, o->offset);
		fputc('\n', out);
	}
}

static void put_debug_file(FILE *out, const struct me_optimize_report *r)
{
	me_report_line(out, "  debug file ", r->debug_file,
		       r->debug_output ? " -> " : " (nothing written)");
	if (r->debug_output)
		mp_text_put(out, r->debug_output);
	fprintf(out, ", %" PRIu64 " -> %" PRIu64 " bytes\n", r->debug_old_size, r->debug_new_size);
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
		put_debug_file(out, r);
	if (!d->present)
		return;
	fprintf(out,
		"  debug      %" PRIu32 " of %" PRIu32 " units have copied code now, %" PRIu32
		" functions, inlined calls and blocks\n",
		d->nr_extended, d->nr_units, d->nr_scopes);
	if (d->nr_scopes_left)
		fprintf(out, "    %6" PRIu32 "  of these are known in the old code only\n",
			d->nr_scopes_left);
	if (d->nr_inlined_left)
		fprintf(out,
			"    %6" PRIu32
			"  functions in place of calls have no entry: backtraces lack "
			"their frames\n",
			d->nr_inlined_left);
	if (d->nr_left)
		fprintf(out, "    %6" PRIu32 "  units left as they were: %s\n", d->nr_left, d->why);
}

void me_report_text_verified(FILE *out, const struct me_verify_report *v)
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
	if (e->nr_via_slot)
		fprintf(out,
			"  PLT        %" PRIu64
			" calls and jumps go through the stub's slot, not to the stub\n",
			e->nr_via_slot);
	if (e->nr_inlined)
		fprintf(out,
			"  inlined    %" PRIu64
			" calls replaced by the called function's code; backtraces lack its "
			"frame\n",
			e->nr_inlined);
	fprintf(out,
		"  old code   %" PRIu32 " patches, %" PRIu64
		" calls and branches led to copies, %" PRIu64 " table entries\n",
		e->patches.nr_patches, e->patches.nr_retargeted, e->patches.nr_table_entries);
	if (e->patches.nr_entries_open)
		fprintf(out,
			"  begin      %" PRIu64 " functions have no patch at their beginning\n",
			e->patches.nr_entries_open);
	fprintf(out,
		"  pointers   %" PRIu64 " to %" PRIu32 " functions now hold the copy's address\n",
		e->patches.nr_pointers, e->nr_redirected);
	me_report_text_verified(out, &r->verified);
	fprintf(out,
		"  growth     hot %" PRIu64 ", warm %" PRIu64 ", unwind tables %" PRIu64
		", exception tables %" PRIu64 ", map %" PRIu64 " (%.1f a block); of all %" PRIu64
		" bytes %" PRIu64 " are padding\n",
		e->hot_bytes, me_report_warm(e), e->eh_frame_bytes, e->lsda_bytes, e->map_bytes,
		r->nr_blocks ? (double)e->map_bytes / (double)r->nr_blocks : 0, e->segment_bytes,
		me_report_padding(e));
	fprintf(out,
		"  size       %" PRIu64 " -> %" PRIu64 " bytes; program header taken from %s\n",
		r->old_size, r->new_size, e->slot_replaced ? e->slot_replaced : "nothing");
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
	static const char *const kinds[] = {
		[ME_COUNTERS_PLAIN] = "",
		[ME_COUNTERS_ATOMIC] = ", atomic",
		[ME_COUNTERS_THREADS] = ", for each thread",
	};
	const struct me_instrument_report *i = &r->instrumented;

	fprintf(out,
		"  counts     %" PRIu32 " functions, %" PRIu32 " edges by %" PRIu32
		" counters%s (%" PRIu32 " fallen through)",
		i->nr_funcs, i->nr_edges, i->nr_counters, kinds[r->counters], i->nr_inline);
	if (i->flow > 0 && !options->all)
		fprintf(out, "; of what flows %.1f %% is counted", 100 * i->counted / i->flow);
	me_report_line(out, "\n  counted in ", options->counting.path, "\n");
}

static void text_meter(FILE *out, const struct me_optimize_options *options,
		       const struct me_optimize_report *r)
{
	fprintf(out,
		"  meter      %" PRIu32 " places in %" PRIu32 " functions%s (%" PRIu32
		" fallen through)",
		r->metered.nr_places, r->metered.nr_funcs,
		r->counters == ME_COUNTERS_ATOMIC ? ", atomic" : "", r->metered.nr_inline);
	me_report_line(out, "\n  counted in ", options->counting.path, "\n");
}

static void text_numbers(FILE *out, const struct me_optimize_options *options,
			 const struct me_number_report *n)
{
	fprintf(out,
		"  paths      %" PRIu32 " functions, %" PRIu32 " of %" PRIu32
		" places where ways meet told by %" PRIu32 " stubs (%" PRIu32 " fallen through)",
		n->nr_funcs, n->nr_told_apart, n->nr_merges, n->nr_stubs, n->nr_inline);
	if (n->merges > 0 && n->insns > 0 && !options->all)
		fprintf(out, "; by the profile %.1f %% of arrivals, for %.2f %% more instructions",
			100 * n->told_apart / n->merges, 100 * n->stubs / n->insns);
	fprintf(out, "\n");
	if (!options->counting.polls)
		return;
	fprintf(out, "  polls      %" PRIu32 " of %" PRIu32 " places where paths end", n->nr_polls,
		n->nr_ends);
	if (n->ends > 0 && !options->all)
		fprintf(out, "; by the profile %.1f %% of the paths", 100 * n->polls / n->ends);
	me_report_line(out, "\n  asked in ", options->counting.path, "\n");
}

static void text_clock(FILE *out, const struct me_optimize_options *options,
		       const struct me_call_clock_report *c)
{
	fprintf(out,
		"  calls      of %" PRIu32 " functions are counted and sampled, of %" PRIu32
		" are not",
		c->nr_funcs, c->nr_without);
	if (c->entries > 0 && c->insns > 0 && !options->all)
		fprintf(out, "; by the profile %.1f %% of the calls, for %.2f %% more instructions",
			100 * c->entries / (c->entries + c->without), 200 * c->entries / c->insns);
	me_report_line(out, "\n  sampled in ", options->counting.path, "\n");
}

static void text_loops(FILE *out, const struct me_optimize_options *options,
		       const struct me_loop_report *loops)
{
	fprintf(out, "  loops      %" PRIu32 " timing points in %" PRIu32 " of these functions",
		loops->nr_points, loops->nr_funcs);
	if (!options->all)
		fprintf(out, "; by the profile for %.2f %% more instructions", 100 * loops->cost);
	fputc('\n', out);
	for (uint32_t i = 0; options->explain && i < loops->nr_listed; i++) {
		const struct me_loop_reported *f = &loops->list[i];

		me_report_line(out, "    ", f->name, f->why_none ? ": not in loops: " : ":");
		if (f->why_none)
			fputs(f->why_none, out);
		for (uint32_t p = 0; p < f->nr_points; p++)
			fprintf(out,
				"%s at 0x%" PRIx64 ", %" PRIu32
				" round%s or more a timing, %" PRIu32
				" instructions or more a round",
				p ? ";" : "", f->points[p].vaddr, f->points[p].rounds,
				f->points[p].rounds == 1 ? "" : "s", f->points[p].distance);
		fputc('\n', out);
	}
}

static void text_not_audited(FILE *out, const struct me_versions_left_out *left)
{
	char why[160];

	if (left->cost > 0)
		snprintf(why, sizeof(why), "%s, %.2f %% more instructions", left->why,
			 100 * left->cost);
	else
		snprintf(why, sizeof(why), "%s", left->why);
	text_left(out, left->name, left->vaddr, left->samples, "samples", why);
}

static void text_audits(FILE *out, const struct me_optimize_options *options,
			const struct me_versions_report *v)
{
	fprintf(out,
		"  audits     %" PRIu32 " functions in two versions; not %" PRIu32
		" whose versions cannot be kept apart, nor %" PRIu32 " entered too often",
		v->nr_funcs, v->nr_fixed, v->nr_costly);
	if (!options->all)
		fprintf(out,
			"; by the profile %.1f %% of the samples, for %.2f %% more instructions, %.3f %% "
			"after the verdicts; %.1f %% of the samples are in those entered too often",
			100 * v->share, 100 * v->cost, 100 * v->decided_cost,
			100 * v->share_costly);
	fputc('\n', out);
	for (uint32_t i = 0; i < v->nr_left_out && (i < ME_VERSIONS_NAMED || options->explain); i++)
		text_not_audited(out, &v->left_out[i]);
	me_report_line(out, "  times in ", options->counting.path, "\n");
}

static double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void text_stale(FILE *out, const struct me_stale_report *stale)
{
	const struct mp_stale_stats *s = &stale->stats;

	fprintf(out, "  stale      counts of another build (%s, %s):\n",
		*stale->build_id ? stale->build_id : "no build-id", stale->path);
	if (s->samples)
		fprintf(out, "             %.1f %% of its %" PRIu64 " samples carried over\n",
			percent_of(s->samples_matched, s->samples), s->samples);
	if (s->transfers)
		fprintf(out, "             %.1f %% of its %" PRIu64 " transfers carried over\n",
			percent_of(s->transfers_matched, s->transfers), s->transfers);
	fprintf(out,
		"             %" PRIu32 " of %" PRIu32 " functions and %" PRIu32 " of %" PRIu32
		" blocks found again\n",
		s->nr_funcs_matched, s->nr_funcs, s->nr_blocks_matched, s->nr_blocks);
	if (stale->own_samples)
		fprintf(out, "             %" PRIu64 " samples of this build added to them\n",
			stale->own_samples);
}

static void text_evidence(FILE *out, const struct me_optimize_report *r)
{
	bool apart = r->counts; /* counts decided the layout; samples exist beside them */
	const char *what = r->exact && !apart ? "counts" : "samples";

	fprintf(out, "  %-10s %" PRIu64 ", ", what, r->samples);
	if (r->transfers && !apart)
		fprintf(out, "and %" PRIu64 " transfers of control; ", r->transfers);
	fprintf(out, "%.1f %% of ", 100 * r->share_moved);
	if (!r->samples)
		fprintf(out, "the transfers");
	else if (r->transfers && !apart)
		fprintf(out, "the %s", what);
	else
		fprintf(out, "them");
	fprintf(out, " in code that moves\n");
	if (apart)
		fprintf(out,
			"  counts     %" PRIu64 " of blocks, and %" PRIu64
			" transfers of control\n",
			r->counts, r->transfers);
	if (r->stale.used)
		text_stale(out, &r->stale);
	if (r->ways)
		fprintf(out, "  foreseen   %" PRIu64 " ways of branches, by registers of samples\n",
			r->ways);
	if (r->paths)
		fprintf(out, "  followed   %" PRIu64 " paths, of %" PRIu32 " functions\n", r->paths,
			r->inference.nr_by_paths);
}

/* A rename replaces one name. Other hard links still lead to the old file. */
void me_report_text_other_names(FILE *out, const struct me_inplace_report *done)
{
	if (done->nr_other_names)
		fprintf(out,
			"  names      %" PRIu64 " other%s still lead%s to the file that was there: "
			"these are two files now\n",
			done->nr_other_names, done->nr_other_names > 1 ? "s" : "",
			done->nr_other_names > 1 ? "" : "s");
}

static void text_in_place(FILE *out, const char *input, const struct me_inplace_report *done)
{
	const char *what = done->dry_run ? "would be optimised in place (nothing written)"
					 : "nothing replaced";

	if (done->backup)
		what = done->was_output ? "optimised anew in place" : "optimised in place";
	else if (done->unchanged)
		what = "left as it is, since the new version is the same";
	me_report_line(out, "", input, ": ");
	fprintf(out, "%s\n", what);
	if (done->through_link)
		me_report_line(out, "  link to    ", done->path, "\n");
	if (done->backup)
		me_report_line(out, "  original   kept in ", done->backup, "\n");
	me_report_text_other_names(out, done);
}

static void text_layout(FILE *out, const struct me_layout_options *layout, enum mp_order functions)
{
	fprintf(out, "  layout     blocks by %s, functions by %s",
		me_order_name(layout->block_order), mp_order_name(functions));
	if (layout->line_log2)
		fprintf(out, ", runs in lines of %u bytes", 1u << layout->line_log2);
	fprintf(out, "%s\n", layout->huge_pages ? ", huge pages" : "");
}

/* Exact counts leave no doubt, so there is no interval. */
static void text_prediction(FILE *out, const struct me_optimize_report *r)
{
	const struct me_prediction *p = &r->prediction;

	fprintf(out, "  predicted  taken branches %+.1f %%", 100.0 * (p->ratio - 1.0));
	if (p->least < p->most)
		fprintf(out, " (%+.0f to %+.0f), at work like what was sampled",
			100.0 * (p->least - 1.0), 100.0 * (p->most - 1.0));
	if (r->share_uncounted > 0)
		fprintf(out,
			", if the functions that could not be counted (%.1f %% of the samples) "
			"take as large a share of the branches",
			100.0 * r->share_uncounted);
	fprintf(out, "\n");
}

static void text_markers(FILE *out, const struct me_markers_report *m)
{
	fprintf(out,
		"  markers    %" PRIu32 " with %" PRIu32 " accesses in code, %" PRIu32
		" left out of copies with what serves only them (%" PRIu32 " instructions)\n",
		m->nr_markers, m->nr_accesses, m->nr_removed, m->nr_insns);
	if (m->nr_not_copied)
		fprintf(out, "    %6" PRIu32 "  in code that was not copied\n", m->nr_not_copied);
	for (int i = ME_SLICE_GOES + 1; i < ME_NR_SLICE_STAYS; i++)
		if (m->stays[i])
			fprintf(out, "    %6" PRIu32 "  stay: %s\n", m->stays[i],
				me_slice_stay_names[i]);
}

void me_report_text(FILE *out, const struct me_optimize_options *options,
		    const struct me_optimize_report *r)
{
	if (r->in_place)
		text_in_place(out, options->input, r->in_place);
	else
		me_report_line(out, "", options->input,
			       options->output ? " -> " : " (nothing written)\n");
	if (!r->in_place && options->output)
		me_report_line(out, "", options->output, "\n");
	fprintf(out, "  build-id   %s\n", *r->build_id ? r->build_id : "none");
	if (!options->all)
		text_evidence(out, r);
	fprintf(out, "  evidence   %s\n", me_report_evidence(r));
	fprintf(out,
		"  functions  %" PRIu32 " in the file, %" PRIu32 " considered, %" PRIu32
		" moved, %" PRIu32 " left alone:\n",
		r->nr_funcs, r->nr_considered, r->nr_moved, r->nr_considered - r->nr_moved);
	if (r->nr_not_worth)
		fprintf(out, "    %6" PRIu32 "  %s\n", r->nr_not_worth,
			options->plan ? "not in the plan" : "too little evidence that they run");
	text_left_alone(out, r);
	text_left_out(out, r);
	text_undescribed(out, r);
	text_unowned(out, &r->unowned);
	if (!options->all)
		text_layout(out, &options->layout, r->function_order);
	me_report_text_adjusted(out, r);
	me_report_text_audited(out, r, options->explain);
	if (options->stress)
		fprintf(out, "  layout     for tests, with seed %" PRIu64 "\n",
			options->stress_seed);
	if (options->stress_inline)
		fprintf(out, "  inlining   for tests, with seed %" PRIu64 "\n",
			options->stress_inline_seed);
	if (r->has_prediction)
		text_prediction(out, r);
	if (r->inference.nr_gave_up)
		fprintf(out,
			"  inference  %" PRIu32 " of %" PRIu32
			" functions by length scaling alone\n",
			r->inference.nr_gave_up, r->inference.nr_funcs);
	if (options->remove_markers)
		text_markers(out, &r->markers);
	if (r->new_size) {
		text_code(out, r);
		if (options->counting.edges)
			text_counting(out, options, r);
		if (options->counting.meter)
			text_meter(out, options, r);
		if (options->counting.paths)
			text_numbers(out, options, &r->numbered);
		if (options->counting.calls)
			text_clock(out, options, &r->clock);
		if (options->counting.audit)
			text_audits(out, options, &r->audited);
		if (options->counting.audit)
			text_loops(out, options, &r->loops);
		text_debug(out, options, r);
	}
	fprintf(out, "  cost       %.3f s of processors (", me_report_total_s(r->stage_cpu_s));
	for (int i = 0; i < ME_NR_STAGES; i++)
		fprintf(out, "%s%s %.3f", i ? ", " : "", me_stage_names[i], r->stage_cpu_s[i]);
	fprintf(out, "), %.3f s in all, %.1f MiB", me_report_total_s(r->stage_s),
		(double)r->peak_rss_bytes / (1 << 20));
	if (r->nr_attempts > 1)
		fprintf(out, ", for %" PRIu32 " attempts", r->nr_attempts);
	fputc('\n', out);
	if (options->explain && r->new_size)
		me_explain_text(out, &r->verified, r->relinkable);
}

void me_report_train(FILE *out, const struct me_train_options *options,
		     const struct me_train_report *r, bool written)
{
	struct me_optimize_options o = options->optimize;

	o.counting = (struct me_counting){0};
	o.input = r->file;
	o.output = written ? options->output : NULL;
	me_report_text(out, &o, &r->final);
	if (options->has_profile)
		; /* nothing was counted */
	else if (r->sampled)
		fprintf(out, "  trained    sampled, then counted in %" PRIu32 " functions",
			r->counting.instrumented.nr_funcs);
	else
		fprintf(out, "  trained    not sampled (%s), counted in %" PRIu32 " functions",
			r->why, r->counting.instrumented.nr_funcs);
	if (!options->has_profile && r->plain_s > 0)
		fprintf(out, "; that run took %.2f times the processor time",
			r->counting_s / r->plain_s);
	if (!options->has_profile)
		fputc('\n', out);
	me_report_text_refined(out, r);
	me_train_outcome(out, options, r);
}
