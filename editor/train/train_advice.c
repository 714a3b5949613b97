// SPDX-License-Identifier: Apache-2.0
/*
 * train_advice - commands that lead on from where a training ended.
 *
 * Decides wording only. Called by morph-optimize.
 */
#include "editor/train/train_advice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/shell_words.h"
#include "editor/base/soname.h"
#include "editor/train/train_where.h"

static void say_command(FILE *out, const struct me_train_options *options)
{
	fputs(" --", out);
	me_shell_words(out, options->command);
	fputc('\n', out);
}

/* The loader looks for a library under its soname. */
static void say_library(FILE *out, const struct me_train_options *options, const char *directory)
{
	fputs("  LD_LIBRARY_PATH=", out);
	me_shell_word(out, directory);
	me_shell_words(out, options->command);
	fputc('\n', out);
}

static void advise_other(FILE *out, const struct me_train_options *options,
			 const struct me_train_report *r, bool instead)
{
	const struct me_where *w = &r->where;

	fprintf(out,
		"%s is where most of the time goes: %" PRIu64 " of %" PRIu64 " samples, %" PRIu64
		" in %s. To optimise it:\n  ",
		w->path, w->other, w->all, w->file, r->file);
	fprintf(out, "%smorph-optimize train -o morph/", "mkdir -p morph && ");
	me_shell_word(out, w->name);
	fputc(' ', out);
	me_shell_word(out, w->path);
	say_command(out, options);
	if (w->library) {
		fputs("and then to use it:\n", out);
		say_library(out, options, "morph");
	}
	if (!instead)
		return;
	fputs("To optimise the program all the same:\n  morph-optimize train -o ", out);
	me_shell_word(out, options->output);
	fputc(' ', out);
	me_shell_word(out, r->file);
	say_command(out, options);
}

static void advise_undecided(FILE *out, const struct me_train_options *options,
			     const struct me_train_report *r)
{
	size_t least = me_train_least_pairs(options);
	size_t more = r->nr_pairs + (r->nr_pairs < 2 * least ? 2 * least : r->nr_pairs);

	if (r->nr_pairs < least)
		fprintf(out,
			"A run takes %.1f s, so there was time for %zu of the %zu pairs that are needed "
			"to decide. Train with a shorter piece of work, or allow --audit-seconds=%.0f.\n",
			r->plain_wall_s, r->nr_pairs, least,
			me_train_audit_seconds(2 * least, r->plain_wall_s) + 1);
	fputs("To go on with the audit:\n  morph-audit --at=", out);
	me_shell_word(out, r->file);
	fputs(" --continue=", out);
	me_shell_word(out, r->pairs);
	fputs(" --export=", out);
	me_shell_word(out, r->pairs);
	fprintf(out, " --pairs=%zu:%zu ", more, more > 500 ? 2 * more : 500);
	if (options->filter) {
		fputs("--filter=", out);
		me_shell_word(out, options->filter);
		fputc(' ', out);
	}
	fputs("--command ", out);
	me_shell_word(out, r->file);
	fputc(' ', out);
	me_shell_word(out, r->undecided);
	say_command(out, options);
	fputs("and if it says faster:\n  mv ", out);
	me_shell_word(out, r->undecided);
	fputc(' ', out);
	me_shell_word(out, options->output);
	fputc('\n', out);
}

/* A new library is used by programs that find it before the original. */
static void advise_library(FILE *out, const struct me_train_options *options,
			   const struct me_train_report *r)
{
	const char *slash = strrchr(options->output, '/');
	size_t len = slash ? (size_t)(slash - options->output) : 0;
	char *name = me_soname(r->file), *directory;

	if (!name) {
		fprintf(out, "To use it, run %s", slash ? "" : "./");
		me_shell_word(out, options->output);
		fputs(" in place of ", out);
		me_shell_word(out, r->file);
		fputs(", which is as it was; to be rid of it, delete it.\n", out);
		return;
	}
	directory = slash ? strndup(options->output, len ? len : 1) : strdup(".");
	if (directory && !strcmp(basename(options->output), name)) {
		fputs("To use the library:\n", out);
		say_library(out, options, directory);
	} else if (directory) {
		fputs("The library's users look for it by another name. To use it:\n"
		      "  mkdir -p morph && cp ",
		      out);
		me_shell_word(out, options->output);
		fputs(" morph/", out);
		me_shell_word(out, name);
		fputc('\n', out);
		say_library(out, options, "morph");
	}
	free(directory);
	free(name);
}

void me_train_advice(FILE *out, const struct me_train_options *options,
		     const struct me_train_report *r, int rc)
{
	if (r->end == ME_TRAIN_UNDECIDED)
		advise_undecided(out, options, r);
	if (r->end == ME_TRAIN_KEPT)
		advise_library(out, options, r);
	if (r->where.matters)
		advise_other(out, options, r, rc == -ESRCH);
}

void me_train_outcome(FILE *out, const struct me_train_options *options,
		      const struct me_train_report *r)
{
	if (r->verdict[0] && strcmp(r->verdict, "output differs")) {
		fprintf(out, "  audited    %s: %.4f times as fast", r->verdict, r->speedup);
		if (r->lowest > 0 && r->highest > 0)
			fprintf(out, ", %g %% interval %.4f to %.4f", r->level, r->lowest,
				r->highest);
		fprintf(out, ", %zu pair%s\n", r->nr_pairs, r->nr_pairs == 1 ? "" : "s");
	}
	switch (r->end) {
	case ME_TRAIN_KEPT:
		fprintf(out, "  result     the new version is %s\n", options->output);
		break;
	case ME_TRAIN_UNDECIDED:
		fprintf(out,
			"  result     keep using the original; the new version is %s, in case a "
			"longer audit finds it faster\n",
			r->undecided);
		break;
	case ME_TRAIN_NOTHING:
		fprintf(out, "  result     keep using the original; nothing was written\n");
		break;
	}
}
