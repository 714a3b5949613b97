// SPDX-License-Identifier: Apache-2.0
/*
 * report - prints what verify and restore did, and holds what the reports in text and in JSON share.
 * Prints only what optimize found out.
 */
#include "editor/cli/report_private.h"

#include <errno.h>

#include "editor/cli/explain.h"
#include "editor/replace/inplace.h"
#include "libprof/cli/json.h"

int me_report_verified(FILE *out, bool json, const char *original,
		       const struct me_optimize_options *options,
		       const struct me_verify_report *verified, bool relinkable)
{
	if (json) {
		json_t *root = json_pack("{s:i, s:s, s:o, s:o, s:s, s:o}", "schema",
					 ME_REPORT_SCHEMA, "command", "verify", "input",
					 mp_json_string(options->input), "original",
					 mp_json_string(original), "kind",
					 me_kind_name(verified->kind), "verified",
					 me_report_json_verified(verified));

		if (root && options->explain)
			json_object_set_new(root, "explanation",
					    me_explain_json(verified, relinkable));
		return me_report_json_print(root, out);
	}
	me_report_line(out, "", options->input, ": made of ");
	me_report_line(out, "", original, "\n");
	fprintf(out, "  kind       %s\n", me_kind_name(verified->kind));
	me_report_text_verified(out, verified);
	if (options->explain)
		me_explain_text(out, verified, relinkable);
	return ferror(out) ? -EIO : 0;
}

static void print_adopted(FILE *out, const char *input, const char *output,
			  const struct me_inplace_report *done)
{
	if (done->unchanged) {
		me_report_line(out, "", input,
			       ": left as it is, since it is this output already\n");
		return;
	}
	me_report_line(out, "", input,
		       done->dry_run ? ": would be replaced (nothing written)\n" : ": replaced\n");
	if (done->through_link)
		me_report_line(out, "  link to    ", done->path, "\n");
	me_report_line(out, "  by         ", output, "\n");
	fprintf(out, "  kind       %s, %s\n", done->kind,
		done->known ? "proved when it was written" : "proved again");
	if (done->backup)
		me_report_line(out, "  original   kept in ", done->backup, "\n");
	me_report_text_other_names(out, done);
}

int me_report_adopted(FILE *out, bool json, const char *input, const char *output,
		      const struct me_inplace_report *done)
{
	if (json)
		return me_report_json_print(
			json_pack("{s:i, s:s, s:o, s:o, s:s, s:b, s:o, s:b, s:b, s:o, s:b, s:I}",
				  "schema", ME_REPORT_SCHEMA, "command", "adopt", "input",
				  mp_json_string(input), "output", mp_json_string(output), "kind",
				  done->kind, "proved_again", !done->known, "path",
				  mp_json_string(done->path), "replaced",
				  !done->unchanged && !done->dry_run, "again", done->was_output,
				  "backup",
				  done->backup ? mp_json_string(done->backup) : json_null(),
				  "dry_run", done->dry_run, "other_names",
				  (json_int_t)done->nr_other_names),
			out);
	print_adopted(out, input, output, done);
	return ferror(out) ? -EIO : 0;
}

int me_report_restored(FILE *out, bool json, const char *input,
		       const struct me_inplace_report *done)
{
	if (json)
		return me_report_json_print(json_pack("{s:i, s:s, s:o, s:o, s:o, s:I}", "schema",
						      ME_REPORT_SCHEMA, "command", "restore",
						      "input", mp_json_string(input), "restored",
						      mp_json_string(done->path), "backup",
						      mp_json_string(done->backup), "other_names",
						      (json_int_t)done->nr_other_names),
					    out);
	me_report_line(out, "", input, ": restored\n");
	if (done->through_link)
		me_report_line(out, "  link to    ", done->path, "\n");
	me_report_line(out, "  from       ", done->backup, "\n");
	me_report_text_other_names(out, done);
	return ferror(out) ? -EIO : 0;
}
