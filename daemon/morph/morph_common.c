// SPDX-License-Identifier: Apache-2.0
/* morph_common - loading, names and JSON for the commands of morph; see morph.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/code/stats_filter.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/wording.h"
#include "daemon/policy/policy.h"
#include "daemon/worker/collector.h"

int md_morph_nothing_collected(void)
{
	struct md_collector service;

	/* A service that waits for the right to sample has no database. */
	md_collector_look(MP_STORE_SERVICE_PATH, &service);
	if (service.runs)
		md_cli_note("nothing was collected yet, though morphd runs: `systemctl status "
			    "morphd' says what it waits for; `morphd run -- COMMAND' collects for "
			    "one command");
	else if (service.may_not)
		md_cli_note("nothing was collected yet: %s; `morphd run -- COMMAND' as root "
			    "collects for one command",
			    service.why);
	else
		md_cli_note("nothing was collected yet: `systemctl enable --now morphd' collects "
			    "on the whole machine, `morphd run -- COMMAND' for one command");
	return MP_EXIT_NO_PROFILE;
}

int md_morph_load(struct md_cli *cli, int64_t since_s, struct mp_store **store,
		  struct md_machine *machine)
{
	struct mp_err err = {0};
	int r;

	*machine = (struct md_machine){0};
	r = md_cli_open(cli, MP_STORE_READ, store);
	if (r)
		return r == MP_EXIT_NO_PROFILE ? md_morph_nothing_collected() : r;
	r = md_machine_load(*store, since_s, machine, &err);
	if (!r)
		return 0;
	md_machine_fini(machine);
	mp_store_close(*store);
	*store = NULL;
	return md_cli_fail("%s", err.msg);
}

int md_morph_policy_dir(const char *named, char *buf, size_t size)
{
	struct mp_err err = {0};

	if (named && snprintf(buf, size, "%s", named) >= (int)size)
		return md_cli_fail("the path of the policy is too long");
	if (!named && md_policy_default_dir(buf, size, &err))
		return md_cli_fail("%s", err.msg);
	return 0;
}

bool md_morph_load_quietly(struct md_cli *cli, struct md_machine *machine)
{
	struct mp_store *store = NULL;
	const char *db = cli->db;
	bool loaded;

	*machine = (struct md_machine){0};
	if (db)
		snprintf(cli->path, sizeof(cli->path), "%s", db);
	else if (mp_store_default_path(cli->path, sizeof(cli->path), false, NULL))
		return false;
	if (mp_store_open(cli->path, MP_STORE_READ, &store, NULL)) {
		if (db || mp_store_open(MP_STORE_SERVICE_PATH, MP_STORE_READ, &store, NULL))
			return false;
		snprintf(cli->path, sizeof(cli->path), "%s", MP_STORE_SERVICE_PATH);
	}
	loaded = !md_machine_load(store, 0, machine, NULL);
	if (!loaded)
		md_machine_fini(machine);
	mp_store_close(store);
	return loaded;
}

int md_morph_find(const struct md_machine *machine, const char *name, struct md_program *out)
{
	const struct md_program_search search = {.modules = machine->modules,
						 .nr_modules = machine->nr_modules};
	struct mp_err err = {0};
	int r = md_program_find(&search, name, out, &err);

	if (!r)
		return 0;
	md_cli_fail("%s", err.msg);
	return r == -ENOTUNIQ ? MP_EXIT_USAGE : MP_EXIT_FAILED;
}

struct md_machine_program *md_morph_entry(struct md_machine *machine,
					  const struct md_program *program)
{
	struct md_machine_program *p = md_machine_find(machine, program->path);

	for (size_t i = 0; i < machine->nr_programs && !p; i++)
		if (machine->programs[i].module &&
		    md_program_is_module(program, machine->programs[i].module))
			p = &machine->programs[i];
	return p;
}

json_t *md_morph_gain_json(const struct mp_job_gain *gain)
{
	return gain->ratio > 0 ? json_pack("{s:f, s:f, s:f}", "ratio", gain->ratio, "lowest",
					   gain->lowest, "highest", gain->highest)
			       : json_null();
}

static json_t *expected_json(const struct md_machine_program *p)
{
	return p->estimated
		       ? json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "percent", p->worth.gain,
				   "least", p->worth.least, "most", p->worth.most,
				   "movable_percent", 100 * p->saving.movable, "taken_per_1000",
				   p->saving.taken, "saved_per_1000", p->saving.saved)
		       : json_null();
}

json_t *md_morph_program_json(const struct md_machine_program *p)
{
	char id[80], *reason = md_wording_reason(p);
	json_t *row = json_pack(
		"{s:o, s:o, s:I, s:f, s:s, s:b, s:o, s:o, s:o, s:o}", "path",
		mp_json_string(p->path), "build_id",
		p->module ? json_string(md_stats_format_id(&p->module->id, id)) : json_null(),
		"samples", (json_int_t)p->nr_samples, "percent", 100 * p->share, "state",
		md_wording_state_key(p), "optimised", md_machine_is_optimised(p), "expected",
		expected_json(p), "measured", md_morph_gain_json(&p->gain), "measured_s",
		p->gain_s ? json_integer(p->gain_s) : json_null(), "reason",
		mp_json_string(reason));

	free(reason);
	return row;
}

size_t md_morph_columns(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return 80;
	return size.ws_col < 60 ? 60 : size.ws_col > 200 ? 200 : size.ws_col;
}
