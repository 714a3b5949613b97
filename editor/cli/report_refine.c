// SPDX-License-Identifier: Apache-2.0
/* report_refine - what a refinement tried and found, as text and as JSON. Called by report_text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/report_private.h"
#include "libprof/cli/json.h"

/* ---- text ---------------------------------------------------------------------------------- */

static void print_name(FILE *out, const char *name, uint64_t vaddr)
{
	char address[32];

	snprintf(address, sizeof(address), "0x%" PRIx64, vaddr);
	me_report_line(out, "", *name ? name : address, "");
}

static void print_culprit(FILE *out, const struct me_refine_culprit *c)
{
	fputs("    ", out);
	print_name(out, c->name, c->vaddr);
	fprintf(out, ": %.2f times as long (%" PRIu64 ", now %" PRIu64 " samples; p %.1g%s): %s\n",
		c->found.factor, c->found.before, c->found.after, c->found.p,
		c->suspect ? ", only a suspect" : "", c->moved ? "stays" : "was not moved");
}

static void print_verdict(FILE *out, const struct me_verdict *v)
{
	fprintf(out, "%s: %.4f times as fast", v->verdict, v->speedup);
	if (v->lowest > 0 && v->highest > 0)
		fprintf(out, ", %g %% interval %.4f to %.4f", 100 * (1 - v->alpha), v->lowest,
			v->highest);
	fprintf(out, ", %zu pair%s\n", v->nr_pairs, v->nr_pairs == 1 ? "" : "s");
}

static void print_refinement(FILE *out, const struct me_refine_report *r)
{
	fprintf(out, "  longer     %zu function%s take%s longer, by %zu runs\n", r->nr_culprits,
		r->nr_culprits == 1 ? "" : "s", r->nr_culprits == 1 ? "s" : "", r->nr_runs);
	for (size_t i = 0; i < r->nr_culprits; i++)
		print_culprit(out, &r->culprits[i]);
	if (!r->verdict.verdict[0])
		return;
	fprintf(out, "  without    them, against the %s: ",
		r->against_original ? "original" : "first version");
	print_verdict(out, &r->verdict);
}

void me_report_text_refined(FILE *out, const struct me_train_report *r)
{
	const struct me_refine_report *refinement = &r->refinement;

	if (r->known.nr)
		fprintf(out, "  known      %zu adjustment%s of earlier trials applied\n",
			r->known.nr, r->known.nr == 1 ? "" : "s");
	if (!r->refined)
		return;
	fputs("  first      ", out);
	print_verdict(out, &r->first);
	if (refinement->nr_runs)
		print_refinement(out, refinement);
	fprintf(out, "  refined    in %.0f s: %s\n", refinement->seconds, refinement->end);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *json_verdict(const struct me_verdict *v)
{
	if (!v->verdict[0])
		return json_null();
	return json_pack("{s:s, s:f, s:o, s:f, s:I}", "verdict", v->verdict, "speedup", v->speedup,
			 "interval",
			 v->lowest > 0 && v->highest > 0
				 ? json_pack("[f, f]", v->lowest, v->highest)
				 : json_null(),
			 "alpha", v->alpha, "pairs", (json_int_t)v->nr_pairs);
}

static json_t *json_wishes(const struct me_wishes *wishes)
{
	char *text = me_wishes_format(wishes);
	json_t *json = text ? json_string(text) : NULL;

	free(text);
	return json;
}

static json_t *json_culprit(const struct me_refine_culprit *c)
{
	return json_pack("{s:o, s:o, s:I, s:I, s:f, s:f, s:f, s:b, s:b}", "function",
			 mp_json_string(c->name), "address", mp_json_address(c->vaddr),
			 "samples_before", (json_int_t)c->found.before, "samples_after",
			 (json_int_t)c->found.after, "factor", c->found.factor, "p", c->found.p,
			 "harm", c->found.harm, "suspect", c->suspect, "moved", c->moved);
}

static json_t *json_refinement(const struct me_train_report *r)
{
	const struct me_refine_report *refinement = &r->refinement;
	json_t *culprits = json_array();

	for (size_t i = 0; i < refinement->nr_culprits; i++)
		json_array_append_new(culprits, json_culprit(&refinement->culprits[i]));
	return json_pack("{s:o, s:o, s:I, s:o, s:s, s:o, s:f, s:s}", "first",
			 json_verdict(&r->first), "culprits", culprits, "runs",
			 (json_int_t)refinement->nr_runs, "adjustments",
			 json_wishes(&refinement->wishes), "against",
			 refinement->against_original ? "original" : "first", "audit",
			 json_verdict(&refinement->verdict), "seconds", refinement->seconds, "end",
			 refinement->end);
}

int me_report_train_json(FILE *out, const struct me_train_options *options,
			 const struct me_train_report *r, bool written)
{
	struct me_verdict end = {.speedup = r->speedup,
				 .lowest = r->lowest,
				 .highest = r->highest,
				 .alpha = 1 - r->level / 100,
				 .nr_pairs = r->nr_pairs};

	snprintf(end.verdict, sizeof(end.verdict), "%s", r->verdict);
	return me_report_json_print(
		json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
			  ME_REPORT_SCHEMA, "command", "refine", "input", mp_json_string(r->file),
			  "output", written ? mp_json_string(options->output) : json_null(),
			  "undecided", r->undecided ? mp_json_string(r->undecided) : json_null(),
			  "undecided_pairs", r->pairs ? mp_json_string(r->pairs) : json_null(),
			  "known", json_wishes(&r->known), "audit", json_verdict(&end),
			  "adjustments", json_wishes(&r->chosen), "refinement",
			  r->refined ? json_refinement(r) : json_null()),
		out);
}
