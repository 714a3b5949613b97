// SPDX-License-Identifier: Apache-2.0
/*
 * stats_trials - the command "trials": shows the versions of files that refining audited. Decides
 * wording only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/stats_filter.h"
#include "daemon/stats/stats.h"
#include "libprof/elf/elf.h"
#include "libprof/store/audits/store_trials.h"

struct trials {
	struct md_stats *stats;
	const char *binary;
};

enum {
	KEY_BINARY = 256
};

static const struct argp_option options[] = {
	{"binary", KEY_BINARY, "FILE", 0, "Only trials of this file, an original", 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trials *t = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = t->stats; return 0;
	case KEY_BINARY: t->binary = arg; return 0;
	case ARGP_KEY_ARG: argp_error(state, "%s: too many arguments", arg); return EINVAL;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	options,
	parse,
	NULL,
	"Show which versions of files morph-optimize refine and train audited, "
	"and what came of each.",
	children,
	0,
	0};

static json_t *row_json(const struct mp_trial *trial)
{
	char id[80];

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:f, s:f, s:f, s:I}", "build_id",
			 md_stats_format_id(&trial->original, id), "machine",
			 md_stats_json_string(trial->machine), "functions",
			 md_stats_json_string(trial->functions), "adjustments",
			 md_stats_json_string(trial->adjustments), "verdict",
			 md_stats_json_string(trial->verdict), "runs", (json_int_t)trial->nr_runs,
			 "ratio", trial->ratio, "lowest", trial->lowest, "highest", trial->highest,
			 "when_s", (json_int_t)trial->when_s);
}

static void print_row(const struct mp_trial *trial)
{
	char id[80], when[32];

	printf("%-19s  %.12s  ", md_stats_format_time(trial->when_s, when),
	       md_stats_format_id(&trial->original, id));
	printf("%-10s %5" PRIu32 " %9.4f  ", trial->verdict, trial->nr_runs, trial->ratio);
	md_stats_put_text(trial->adjustments[0] ? trial->adjustments : "(none)");
	if (trial->functions[0]) {
		printf("  [");
		md_stats_put_text(trial->functions);
		putchar(']');
	}
	putchar('\n');
}

static int report(const struct trials *t, const struct mp_trial *trials, size_t nr)
{
	if (t->stats->json) {
		json_t *root = md_stats_json_new("trials"), *rows = json_array();

		for (size_t i = 0; i < nr; i++)
			json_array_append_new(rows, row_json(&trials[i]));
		json_object_set_new(root, "rows", rows);
		return md_stats_json_print(root);
	}
	for (size_t i = 0; i < nr; i++) {
		if (!i || strcmp(trials[i].machine, trials[i - 1].machine)) {
			printf("%sOn ", i ? "\n" : "");
			md_stats_put_text(trials[i].machine);
			printf("\n%-19s  %-12s  %-10s %5s %9s  %s\n", "When", "Build-id", "Verdict",
			       "Runs", "As fast", "Adjustments  [Functions]");
		}
		print_row(&trials[i]);
	}
	return md_stats_finish(MP_EXIT_DONE);
}

static int read_id(const char *path, struct mp_id *id, struct mp_err *err)
{
	struct mp_elf *elf;
	int r = mp_elf_open(path, MP_ELF_ID, &elf, err);

	if (r)
		return r;
	*id = elf->id;
	mp_elf_close(elf);
	return 0;
}

int md_stats_trials(struct md_stats *stats, int argc, char **argv)
{
	struct trials t = {.stats = stats};
	struct mp_trial *trials = NULL;
	struct mp_store *store;
	struct mp_err err = {0};
	struct mp_id id;
	size_t nr = 0;
	int r, status;

	md_stats_parse(&argp, argc, argv, &t);
	status = md_stats_open(stats, MP_STORE_READ, &store);
	if (status)
		return status;
	r = t.binary ? read_id(t.binary, &id, &err) : 0;
	if (!r)
		r = mp_store_list_trials(store, t.binary ? &id : NULL, NULL, &trials, &nr, &err);
	if (r)
		status = md_stats_fail("%s", err.msg);
	else if (!nr)
		status = (md_stats_note("%s: nothing was tried%s", stats->path,
					t.binary ? " with this file" : ""),
			  MP_EXIT_NO_PROFILE);
	else
		status = report(&t, trials, nr);
	mp_store_free_trials(trials, nr);
	mp_store_close(store);
	return status;
}
