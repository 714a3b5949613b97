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

#define MP_OPTIONS struct trials

struct trials {
	struct md_cli *cli;
	const char *binary;
};

static const struct mp_option options[] = {MP_VALUE(TEXT, "binary", 0, binary, "FILE",
						    "Only trials of this file, an original"),
					   MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "Show which versions of files morph-optimize refine and train audited, "
	       "and what came of each.",
	.shared = &md_cli_common_argp};

static json_t *row_json(const struct mp_trial *trial)
{
	char id[80];

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:f, s:f, s:f, s:I}", "build_id",
			 md_stats_format_id(&trial->original, id), "machine",
			 mp_json_string(trial->machine), "functions",
			 mp_json_string(trial->functions), "adjustments",
			 mp_json_string(trial->adjustments), "verdict",
			 mp_json_string(trial->verdict), "runs", (json_int_t)trial->nr_runs,
			 "ratio", trial->ratio, "lowest", trial->lowest, "highest", trial->highest,
			 "when_s", (json_int_t)trial->when_s);
}

static void print_row(const struct mp_trial *trial)
{
	char id[80], when[32];

	printf("%-19s  %.12s  ", md_cli_format_time(trial->when_s, when),
	       md_stats_format_id(&trial->original, id));
	printf("%-10s %5" PRIu32 " %9.4f  ", trial->verdict, trial->nr_runs, trial->ratio);
	md_cli_put_text(trial->adjustments[0] ? trial->adjustments : "(none)");
	if (trial->functions[0]) {
		printf("  [");
		md_cli_put_text(trial->functions);
		putchar(']');
	}
	putchar('\n');
}

static int report(const struct trials *t, const struct mp_trial *trials, size_t nr)
{
	if (t->cli->json) {
		json_t *root = md_cli_json_new("trials"), *rows = json_array();

		for (size_t i = 0; i < nr; i++)
			json_array_append_new(rows, row_json(&trials[i]));
		json_object_set_new(root, "rows", rows);
		return md_cli_json_print(root);
	}
	for (size_t i = 0; i < nr; i++) {
		if (!i || strcmp(trials[i].machine, trials[i - 1].machine)) {
			printf("%sOn ", i ? "\n" : "");
			md_cli_put_text(trials[i].machine);
			printf("\n%-19s  %-12s  %-10s %5s %9s  %s\n", "When", "Build-id", "Verdict",
			       "Runs", "As fast", "Adjustments  [Functions]");
		}
		print_row(&trials[i]);
	}
	return md_cli_finish(MP_EXIT_DONE);
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

int md_stats_trials(struct md_cli *cli, int argc, char **argv)
{
	struct trials t = {.cli = cli};
	struct mp_trial *trials = NULL;
	struct mp_store *store;
	struct mp_err err = {0};
	struct mp_id id;
	size_t nr = 0;
	int r, status;

	md_cli_parse(&usage, argc, argv, &t, cli);
	status = md_cli_open(cli, MP_STORE_READ, &store);
	if (status)
		return status;
	r = t.binary ? read_id(t.binary, &id, &err) : 0;
	if (!r)
		r = mp_store_list_trials(store, t.binary ? &id : NULL, NULL, &trials, &nr, &err);
	if (r)
		status = md_cli_fail("%s", err.msg);
	else if (!nr)
		status = (md_cli_note("%s: nothing was tried%s", cli->path,
				      t.binary ? " with this file" : ""),
			  MP_EXIT_NO_PROFILE);
	else
		status = report(&t, trials, nr);
	mp_store_free_trials(trials, nr);
	mp_store_close(store);
	return status;
}
