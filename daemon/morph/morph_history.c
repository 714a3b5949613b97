// SPDX-License-Identifier: Apache-2.0
/* morph_history - the command "history": every decision of morph-worker, with its evidence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/stats_filter.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/wording.h"
#include "libprof/base/text.h"
#include "libprof/store/jobs/store_history.h"

#define MP_OPTIONS struct history

struct history {
	struct md_cli *cli;
	const char *name;
	int64_t since_s;
	struct md_machine machine;
	struct md_program program;
	struct mp_decision *decisions;
	size_t nr;
};

static const struct mp_option options[] = {
	MP_VALUE(TIME, "since", 's', since_s, "WHEN",
		 "Leave out older decisions: 2h, 3d, today, 2026-11-20, ..."),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.arguments = "[PROGRAM]",
	.argument = MP_AT(name),
	.doc = "Show every decision about PROGRAM, or about all programs, oldest first.",
	.shared = &md_cli_common_argp};

static void print_one(const struct mp_decision *d)
{
	char when[MD_WORDING_MAX], gain[MD_WORDING_MAX];

	printf("%-16s  %-9s %-10s ", md_wording_time(d->when_s, when), d->step, d->verdict);
	mp_text_put(stdout, d->path);
	if (d->round > 1)
		printf(", round %" PRIu32, d->round);
	putchar('\n');
	if (d->gain.ratio > 0 && !strcmp(d->step, "audit"))
		printf("%18s%s\n", "", md_wording_gain(&d->gain, gain));
	else if (d->gain.predicted > 0 && !strcmp(d->step, "write"))
		printf("%18s%.1f %% of its taken branches are saved, as predicted\n", "",
		       100 * (1 - d->gain.predicted));
	if (d->reason[0]) {
		printf("%18s", "");
		mp_text_put(stdout, d->reason);
		putchar('\n');
	}
}

static json_t *row_json(const struct mp_decision *d)
{
	char id[80];

	return json_pack("{s:I, s:o, s:s, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:s}", "when_s",
			 (json_int_t)d->when_s, "path", mp_json_string(d->path), "build_id",
			 md_stats_format_id(&d->id, id), "round", (json_int_t)d->round, "step",
			 mp_json_string(d->step), "state", mp_job_state_name(d->state), "verdict",
			 mp_json_string(d->verdict), "reason", mp_json_string(d->reason),
			 "measured", md_morph_gain_json(&d->gain), "predicted_taken_ratio",
			 d->gain.predicted > 0 ? json_real(d->gain.predicted) : json_null(),
			 "layout", d->layout);
}

static int print(const struct history *h)
{
	json_t *root, *rows;

	if (!h->cli->json) {
		for (size_t i = 0; i < h->nr; i++)
			print_one(&h->decisions[i]);
		return md_cli_finish(MP_EXIT_DONE);
	}
	root = md_cli_json_new("history");
	rows = json_array();
	for (size_t i = 0; i < h->nr; i++)
		json_array_append_new(rows, row_json(&h->decisions[i]));
	json_object_set_new(root, "decisions", rows);
	return md_cli_json_print(root);
}

int md_morph_history(struct md_cli *cli, int argc, char **argv)
{
	struct history h = {.cli = cli};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &h, cli);
	r = md_morph_load(cli, 0, &store, &h.machine);
	if (r)
		return r;
	if (h.name)
		r = md_morph_find(&h.machine, h.name, &h.program);
	if (!r &&
	    mp_store_list_history(store, h.program.path, h.since_s, &h.decisions, &h.nr, &err))
		r = md_cli_fail("%s", err.msg);
	if (!r && !h.nr)
		r = (md_cli_note("%s: nothing was decided%s%s", cli->path, h.name ? " about " : "",
				 h.name ? h.program.path : ""),
		     MP_EXIT_NO_PROFILE);
	else if (!r)
		r = print(&h);
	mp_store_free_history(h.decisions, h.nr);
	md_program_fini(&h.program);
	md_machine_fini(&h.machine);
	mp_store_close(store);
	return r;
}
