// SPDX-License-Identifier: Apache-2.0
/*
 * stats_status - the command "status": shows what became of every sample, which source
 * collected and why, and the size of the database.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/stats/stats.h"
#include "libprof/store/store_ways.h"

#define MP_OPTIONS struct status

struct status {
	struct md_cli *cli;
	bool check;
	/* results */
	uint64_t size_bytes;
	struct mp_module *modules;
	size_t nr_modules;
	struct mp_session *sessions;
	size_t nr_sessions;
	struct mp_ledger total;
	uint64_t nr_transfers, nr_ways;
	int64_t first_s, last_s;
};

static const struct mp_option options[] = {
	MP_FLAG("check", check, "Check the whole database: file, counts and ledgers"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {.options = options,
				      .doc = "Say what was collected, how, and what became of it.",
				      .shared = &md_cli_common_argp};

static int load(struct status *status, struct mp_store *store, struct mp_err *err)
{
	int r = mp_store_begin(store, err);

	if (r)
		return r;
	status->size_bytes = mp_store_size_bytes(store);
	r = mp_store_list_modules(store, 0, &status->modules, &status->nr_modules, err);
	if (!r)
		r = mp_store_list_sessions(store, &status->sessions, &status->nr_sessions, err);
	if (!r)
		r = mp_store_sum_ways(store, &status->nr_ways, err);
	if (!r && status->check)
		r = mp_store_check(store, err);
	mp_store_rollback(store);
	return r;
}

static void add_up(struct status *status)
{
	for (size_t i = 0; i < status->nr_modules; i++)
		status->nr_transfers += status->modules[i].nr_transfers;
	for (size_t i = 0; i < status->nr_sessions; i++) {
		const struct mp_session *s = &status->sessions[i];

		status->total.emitted += s->ledger.emitted;
		status->total.attributed += s->ledger.attributed;
		for (int k = 0; k < MP_NR_UNATTR; k++)
			status->total.unattributed[k] += s->ledger.unattributed[k];
		for (int k = 0; k < MP_NR_LOST; k++)
			status->total.lost[k] += s->ledger.lost[k];
		for (int k = 0; k < MP_NR_PATH_FATES; k++)
			status->total.paths[k] += s->ledger.paths[k];
		for (int k = 0; k < MP_NR_WALK_STOP; k++)
			status->total.stacks[k] += s->ledger.stacks[k];
		if (!status->first_s || s->start_s < status->first_s)
			status->first_s = s->start_s;
		if (s->last_s > status->last_s)
			status->last_s = s->last_s;
	}
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_line(const char *what, const char *why, uint64_t nr, uint64_t all)
{
	printf("  %-13s %-11s %15" PRIu64 "  %6.2f%%\n", what, why, nr,
	       all ? 100.0 * (double)nr / (double)all : 0.0);
}

static void print_ledger(const struct mp_ledger *l)
{
	print_line("emitted", "", l->emitted, l->emitted);
	print_line("attributed", "", l->attributed, l->emitted);
	for (int i = 0; i < MP_NR_UNATTR; i++)
		if (l->unattributed[i])
			print_line("unattributed", mp_unattributed_name(i), l->unattributed[i],
				   l->emitted);
	for (int i = 0; i < MP_NR_LOST; i++)
		if (l->lost[i])
			print_line("lost", mp_lost_name(i), l->lost[i], l->emitted);
	for (int i = 0; i < MP_NR_PATH_FATES; i++)
		if (l->paths[i])
			print_line("with path", mp_path_fate_name(i), l->paths[i], l->emitted);
	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		if (l->stacks[i])
			print_line("with stack", mp_walk_stop_name(i), l->stacks[i], l->emitted);
}

static int print_text(const struct status *status)
{
	char size[32], first[32], last[32];

	printf("Database: ");
	md_cli_put_text(status->cli->path);
	printf(", %s%s\n", md_cli_format_size(status->size_bytes, size),
	       status->check ? ", checked and sound" : "");
	printf("Modules:  %zu\n", status->nr_modules);
	printf("Period:   %s to %s\n", md_cli_format_time(status->first_s, first),
	       md_cli_format_time(status->last_s, last));
	printf("Samples:\n");
	print_ledger(&status->total);
	if (status->nr_transfers)
		printf("Transfers of control: %" PRIu64 "\n", status->nr_transfers);
	if (status->nr_ways)
		printf("Ways of branches: %" PRIu64 "\n", status->nr_ways);
	printf("Sessions: %zu\n", status->nr_sessions);
	for (size_t i = 0; i < status->nr_sessions; i++) {
		const struct mp_session *s = &status->sessions[i];

		printf("  %s to %s  ", md_cli_format_time(s->start_s, first),
		       md_cli_format_time(s->last_s, last));
		md_cli_put_text(s->collector);
		if (s->event[0]) {
			printf(", ");
			md_cli_put_text(s->event);
		}
		if (s->rate_hz)
			printf(" at %" PRIu32 " Hz", s->rate_hz);
		printf(", %" PRIu64 " samples, %" PRIu64 " attributed\n", s->ledger.emitted,
		       s->ledger.attributed);
		if (s->why[0]) {
			printf("    why this collector: ");
			md_cli_put_text(s->why);
			putchar('\n');
		}
	}
	return md_cli_finish(MP_EXIT_DONE);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *ledger_json(const struct mp_ledger *l)
{
	json_t *unattributed = json_object(), *lost = json_object(), *paths = json_object();
	json_t *stacks = json_object();

	for (int i = 0; i < MP_NR_UNATTR; i++)
		json_object_set_new(unattributed, mp_unattributed_name(i),
				    json_integer((json_int_t)l->unattributed[i]));
	for (int i = 0; i < MP_NR_LOST; i++)
		json_object_set_new(lost, mp_lost_name(i), json_integer((json_int_t)l->lost[i]));
	for (int i = 0; i < MP_NR_PATH_FATES; i++)
		json_object_set_new(paths, mp_path_fate_name(i),
				    json_integer((json_int_t)l->paths[i]));
	for (int i = 0; i < MP_NR_WALK_STOP; i++)
		json_object_set_new(stacks, mp_walk_stop_name(i),
				    json_integer((json_int_t)l->stacks[i]));
	return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "emitted", (json_int_t)l->emitted,
			 "attributed", (json_int_t)l->attributed, "unattributed", unattributed,
			 "lost", lost, "paths", paths, "stacks", stacks);
}

static int print_json(const struct status *status)
{
	json_t *root = md_cli_json_new("status"), *sessions = json_array();

	for (size_t i = 0; i < status->nr_sessions; i++) {
		const struct mp_session *s = &status->sessions[i];

		json_array_append_new(sessions, json_pack("{s:I, s:I, s:o, s:o, s:o, s:I, s:o}",
							  "start_s", (json_int_t)s->start_s,
							  "last_s", (json_int_t)s->last_s,
							  "collector", mp_json_string(s->collector),
							  "why", mp_json_string(s->why), "event",
							  mp_json_string(s->event), "rate_hz",
							  (json_int_t)s->rate_hz, "samples",
							  ledger_json(&s->ledger)));
	}
	json_object_set_new(root, "database",
			    json_pack("{s:o, s:I}", "path", mp_json_string(status->cli->path),
				      "size_bytes", (json_int_t)status->size_bytes));
	json_object_set_new(root, "checked", json_boolean(status->check));
	json_object_set_new(root, "nr_modules", json_integer((json_int_t)status->nr_modules));
	json_object_set_new(root, "first_s", json_integer(status->first_s));
	json_object_set_new(root, "last_s", json_integer(status->last_s));
	json_object_set_new(root, "samples", ledger_json(&status->total));
	json_object_set_new(root, "nr_transfers", json_integer((json_int_t)status->nr_transfers));
	json_object_set_new(root, "nr_ways", json_integer((json_int_t)status->nr_ways));
	json_object_set_new(root, "sessions", sessions);
	return md_cli_json_print(root);
}

int md_stats_status(struct md_cli *cli, int argc, char **argv)
{
	struct status status = {.cli = cli};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &status, cli);
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (r)
		return r;
	if (load(&status, store, &err)) {
		r = md_cli_fail("%s", err.msg);
	} else {
		add_up(&status);
		r = cli->json ? print_json(&status) : print_text(&status);
		if (!r && !status.total.attributed && !status.nr_transfers) {
			md_cli_note("%s: no sample is stored yet", cli->path);
			r = MP_EXIT_NO_PROFILE;
		}
	}
	mp_store_free_modules(status.modules, status.nr_modules);
	free(status.sessions);
	mp_store_close(store);
	return r;
}
