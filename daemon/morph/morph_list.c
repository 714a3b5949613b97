// SPDX-License-Identifier: Apache-2.0
/*
 * morph_list - the command "list": all programs with a share of the machine or a job, what became
 * of each, and which running processes still use an old file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/machine/old_users.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/wording.h"
#include "libprof/base/text.h"
#include "libprof/cli/progress.h"

#define MP_OPTIONS struct list

struct list {
	struct md_cli *cli;
	int64_t since_s;
	bool all;
	struct md_machine machine;
	const struct md_machine_program **shown;
	size_t nr_shown;
	const char **paths; /* of @shown */
	struct md_old_user *users;
	size_t nr_users;
};

static const struct mp_option options[] = {
	MD_OPTION_SINCE, MP_FLAG("all", all, "Also programs with less than 0.1 % of the samples"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "List the programs of this machine, what became of each, and which processes still use an "
	       "old file.",
	.shared = &md_cli_common_argp};

static int choose(struct list *l)
{
	const struct md_machine *m = &l->machine;

	l->shown = calloc(m->nr_programs + 1, sizeof(*l->shown));
	l->paths = calloc(m->nr_programs + 1, sizeof(*l->paths));
	if (!l->shown || !l->paths)
		return md_cli_fail("out of memory");
	for (size_t i = 0; i < m->nr_programs; i++) {
		const struct md_machine_program *p = &m->programs[i];

		if (!l->all && !p->job && p->share < MD_MORPH_LEAST_SHARE)
			continue;
		l->paths[l->nr_shown] = p->path;
		l->shown[l->nr_shown++] = p;
	}
	if (md_old_users_find(l->paths, l->nr_shown, &l->users, &l->nr_users))
		md_cli_note("cannot tell which processes use old files");
	return 0;
}

static void put_users(const struct list *l, size_t i)
{
	size_t nr = 0;

	for (size_t k = 0; k < l->nr_users; k++) {
		if (l->users[k].path != i)
			continue;
		fputs(nr++ ? ", " : "          old file still used by: ", stdout);
		mp_text_put(stdout, l->users[k].name);
		printf(" (%d)", (int)l->users[k].pid);
		if (nr == 6) {
			fputs(", ...", stdout);
			break;
		}
	}
	if (nr)
		putchar('\n');
}

static int print(const struct list *l)
{
	size_t columns = md_morph_columns(), width = columns - 62;
	char gain[MD_WORDING_MAX];

	printf("%8s  %-*s  %-22s  %s\n", "Machine", (int)width, "Program", "State", "Measured");
	for (size_t i = 0; i < l->nr_shown; i++) {
		const struct md_machine_program *p = l->shown[i];

		printf("%6.2f %%  ", 100 * p->share);
		md_wording_put_path(stdout, p->path, width);
		printf("  %-22s  %s\n", md_wording_state(p),
		       p->gain.ratio > 0 ? md_wording_gain(&p->gain, gain) : "-");
		put_users(l, i);
	}
	return md_cli_finish(MP_EXIT_DONE);
}

static int print_json(const struct list *l)
{
	json_t *root = md_cli_json_new("list"), *rows = json_array();

	for (size_t i = 0; i < l->nr_shown; i++) {
		json_t *row = md_morph_program_json(l->shown[i]), *users = json_array();

		for (size_t k = 0; k < l->nr_users; k++)
			if (l->users[k].path == i)
				json_array_append_new(users,
						      json_pack("{s:I, s:o}", "pid",
								(json_int_t)l->users[k].pid, "name",
								mp_json_string(l->users[k].name)));
		json_object_set_new(row, "old_file_users", users);
		json_array_append_new(rows, row);
	}
	json_object_set_new(root, "programs", rows);
	return md_cli_json_print(root);
}

int md_morph_list(struct md_cli *cli, int argc, char **argv)
{
	struct list l = {.cli = cli};
	struct mp_store *store;
	int r;

	md_cli_parse(&usage, argc, argv, &l, cli);
	r = md_morph_load(cli, l.since_s, &store, &l.machine);
	if (r)
		return r;
	mp_progress_start("morph", false);
	mp_progress_say("estimating gains");
	r = md_machine_estimate(&l.machine, store, MD_MORPH_ESTIMATES, MD_MORPH_ESTIMATE_S,
				l.since_s)
		    ? md_cli_fail("out of memory")
		    : choose(&l);
	mp_progress_stop();
	if (!r && !l.nr_shown)
		r = (md_cli_note("%s: holds no programs%s", cli->path,
				 l.since_s ? " since then" : ""),
		     MP_EXIT_NO_PROFILE);
	else if (!r)
		r = cli->json ? print_json(&l) : print(&l);
	free(l.users);
	free(l.paths);
	free(l.shown);
	md_machine_fini(&l.machine);
	mp_store_close(store);
	return r;
}
