// SPDX-License-Identifier: Apache-2.0
/* report_object - what happened to a relocatable object or an archive; text and JSON. */
#include "editor/cli/object/report_object.h"

#include <errno.h>
#include <inttypes.h>

#include "editor/cli/report_private.h"
#include "libprof/base/text.h"
#include "libprof/cli/json.h"

/* More reasons than this fill a screen; --json has all. */
#define MAX_LEFT 20

static int print_json(FILE *out, const struct me_optimize_options *o, const char *program,
		      const struct me_object_report *r)
{
	json_t *root, *left = json_array();

	for (uint32_t i = 0; left && i < r->nr_left; i++) {
		json_t *one = json_pack("{s:o, s:b}", "why", mp_json_string(r->left[i].why),
					"moved", r->left[i].moved);

		if (*r->left[i].member)
			json_object_set_new(one, "member", mp_json_string(r->left[i].member));
		if (r->left[i].name)
			json_object_set_new(one, "function", mp_json_string(r->left[i].name));
		json_array_append_new(left, one);
	}
	root = json_pack("{s:i, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
			 "schema", ME_REPORT_SCHEMA, "command", "object", "input",
			 mp_json_string(o->input), "program", mp_json_string(program), "members",
			 (json_int_t)r->nr_members, "members_unchanged",
			 (json_int_t)r->nr_members_same, "functions", (json_int_t)r->nr_funcs,
			 "matched", (json_int_t)r->nr_matched, "hot", (json_int_t)r->nr_hot,
			 "split", (json_int_t)r->nr_split, "whole", (json_int_t)r->nr_whole,
			 "hot_bytes", (json_int_t)r->hot_bytes, "cold_bytes",
			 (json_int_t)r->cold_bytes, "left_alone", left);
	return me_report_json_print(root, out);
}

static void print_text(FILE *out, const struct me_optimize_options *o, const char *program,
		       const struct me_object_report *r)
{
	me_report_line(out, "", o->input, "");
	me_report_line(out, ", by the profile of ", program,
		       !o->output ? " (nothing written)\n" : "\n");
	if (r->nr_members)
		fprintf(out, "  members    %" PRIu32 ", of which %" PRIu32 " are unchanged\n",
			r->nr_members, r->nr_members_same);
	fprintf(out,
		"  functions  %" PRIu32 ", of which the program has %" PRIu32 "; hot: %" PRIu32
		"\n",
		r->nr_funcs, r->nr_matched, r->nr_hot);
	fprintf(out, "  moved      %" PRIu32 " with a cold part, %" PRIu32 " in one piece\n",
		r->nr_split, r->nr_whole);
	fprintf(out, "  bytes      %" PRIu64 " hot, %" PRIu64 " cold\n", r->hot_bytes,
		r->cold_bytes);
	for (uint32_t i = 0; i < r->nr_left && i < MAX_LEFT; i++) {
		me_report_line(out, r->left[i].moved ? "  whole      " : "  unchanged  ",
			       r->left[i].name ? r->left[i].name : r->left[i].member, ": ");
		mp_text_put(out, r->left[i].why);
		fputc('\n', out);
	}
	if (r->nr_left > MAX_LEFT)
		fprintf(out, "  ...        %" PRIu32 " more (--json lists all)\n",
			r->nr_left - MAX_LEFT);
	if (o->output)
		me_report_line(out, "  order      ", o->output,
			       ".order has the program's hot functions in their order\n");
}

int me_report_object(FILE *out, bool json, const struct me_optimize_options *options,
		     const char *program, const struct me_object_report *report)
{
	if (json)
		return print_json(out, options, program, report);
	print_text(out, options, program, report);
	return ferror(out) ? -EIO : 0;
}

int me_report_object_verified(FILE *out, bool json, const char *file, const char *original,
			      const struct me_verify_object_report *r)
{
	if (json)
		return me_report_json_print(
			json_pack("{s:i, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "schema",
				  ME_REPORT_SCHEMA, "command", "verify-object", "input",
				  mp_json_string(file), "original", mp_json_string(original),
				  "objects", (json_int_t)r->nr_objects, "unchanged",
				  (json_int_t)r->nr_same, "instructions", (json_int_t)r->nr_insns,
				  "references", (json_int_t)r->nr_references, "unwind_rows",
				  (json_int_t)r->nr_rows),
			out);
	me_report_line(out, "", file, ": made of ");
	me_report_line(out, "", original, "\n");
	fprintf(out,
		"  verified   %" PRIu32 " objects (%" PRIu32 " members are unchanged), %" PRIu64
		" instructions, %" PRIu64 " references to code, %" PRIu64 " unwind rows\n",
		r->nr_objects, r->nr_same, r->nr_insns, r->nr_references, r->nr_rows);
	return ferror(out) ? -EIO : 0;
}
