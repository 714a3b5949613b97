// SPDX-License-Identifier: Apache-2.0
/* build_command - the command "build": options, and the loop over jobs; see build.h. */
#include "daemon/fleet/command.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/builds/build.h"
#include "daemon/fleet/defaults.h"
#include "daemon/cli/cli.h"
#include "daemon/worker/child.h"
#include "libprof/cli/program.h"

#define MP_OPTIONS struct options

struct options {
	struct md_fleet_access access;
	struct md_places originals;
	double give_up_s;
	bool once;
};

static void add_place(const struct mp_option *option, void *options, char *arg,
		      struct argp_state *state)
{
	struct md_places *places = &((struct options *)options)->originals;

	if (places->nr == MD_PLACES_MAX)
		argp_error(state, "at most %d times --%s", MD_PLACES_MAX, option->name);
	places->list[places->nr++] = arg;
}

static const struct mp_option option_table[] = {
	MP_SET("originals", 0, add_place, "DIR",
	       "Where originals are: a directory, searched with all below it, such as /usr. May be given "
	       "several times"),
	MP_FLAG("once", once, "Take one job at most, and end"),
	MP_NUMBER("give-up", 0, give_up_s, 0, 1e6, "SECONDS",
		  "How long to try to reach the server again (default: 300)"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	struct options *o = options;

	if (!o->originals.nr)
		argp_error(state, "say where originals are: --originals=DIR");
	for (size_t i = 0; i < o->originals.nr; i++) {
		char *real = realpath(o->originals.list[i], NULL);

		if (!real)
			argp_error(state, "--originals=%s: %s", o->originals.list[i],
				   strerror(errno));
		o->originals.list[i] = real;
	}
}

static const struct mp_usage usage = {
	.options = option_table,
	.check = check,
	.doc = "Make the builds that operators have asked for: take a job from the database, optimise the "
	       "original by the fleet's profile, and store the plan of the output. Several builders take "
	       "different jobs; the job of a builder that is killed is taken again.\v"
	       "Exit status: 0 done, 1 failed, 2 usage, 75 the server is gone."};

static void say(const struct md_build_job *job, const char *text)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];

	mp_id_format_build_id(&job->id, hex);
	md_cli_put_text(hex);
	if (job->options[0])
		putchar(' ');
	md_cli_put_text(job->options);
	fputs(": ", stdout);
	md_cli_put_text(text);
	putchar('\n');
	fflush(stdout);
}

/* Return: exit status; -1: there was no job. */
static int one_job(struct md_build *build)
{
	struct md_build_job job;
	enum md_build_end end;
	struct mp_err err = {""};
	int r = md_build_job_take(&build->builder, &job, &err);

	if (r == -ENOENT)
		return -1;
	if (!r)
		r = md_build_run(build, &job, &end, &err);
	if (r)
		return md_fleet_failed(r, &err);
	return end == MD_BUILD_FAILED ? MP_EXIT_FAILED : MP_EXIT_DONE;
}

static void wait_for_jobs(void)
{
	time_t until = time(NULL) + MD_FLEET_POLL_S;

	do
		sleep(1);
	while (time(NULL) < until && !md_child_is_stopped());
}

/* Until it is told to stop. A build that fails is the operator's to look at, and no end. */
static int work(struct md_build *build, const struct options *o)
{
	int r = MP_EXIT_DONE;

	while (!md_child_is_stopped()) {
		r = one_job(build);
		if (o->once)
			break;
		if (r == MP_EXIT_LATER)
			PQreset(build->builder.conn);
		if (r == -1 || r == MP_EXIT_LATER)
			wait_for_jobs();
		r = MP_EXIT_DONE;
	}
	return r == -1 ? MP_EXIT_DONE : r;
}

int md_fleet_command_build(int argc, char **argv)
{
	struct options o = {.give_up_s = MD_FLEET_GIVE_UP_S};
	struct md_build build = {.say = say};
	int r;

	r = md_fleet_start(&usage, argc, argv, &o, &build.builder.conn);
	if (r)
		return r;
	build.builder.version = mp_program_version();
	build.builder.give_up_s = o.give_up_s;
	build.database = o.access.config.database;
	build.originals = &o.originals;
	md_child_catch_signals();
	r = work(&build, &o);
	PQfinish(build.builder.conn);
	for (size_t i = 0; i < o.originals.nr; i++)
		free((char *)o.originals.list[i]);
	return md_cli_finish(r);
}
