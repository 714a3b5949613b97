// SPDX-License-Identifier: Apache-2.0
/* build_command - the command "build": options, and the loop over jobs; see build.h. */
#include "daemon/fleet/client_command.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/fleet/builds/build.h"
#include "daemon/stats/stats.h"
#include "daemon/worker/child.h"
#include "libprof/base/text.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

#define PLACES_MAX 16
#define GIVE_UP_S  300
#define POLL_S	   60

struct options {
	struct md_fleet_access access;
	const char *places[PLACES_MAX];
	size_t nr_places;
	double give_up_s, poll_s;
	bool once;
};

enum {
	KEY_ONCE = 256,
	KEY_ORIGINALS,
	KEY_GIVE_UP,
	KEY_POLL
};

static const struct argp_option option_table[] = {
	{"originals", KEY_ORIGINALS, "DIR", 0,
	 "Where originals are: a directory, searched with all below it, such as /usr. May be given "
	 "several times",
	 0},
	{"once", KEY_ONCE, NULL, 0, "Take one job at most, and end", 0},
	{"give-up", KEY_GIVE_UP, "SECONDS", 0,
	 "How long to try to reach the server again (default: 300)", 0},
	{"poll", KEY_POLL, "SECONDS", 0, "How often to ask for jobs (default: 60)", 0},
	{0}};

static void add_place(struct options *o, struct argp_state *state, const char *arg)
{
	char *real = realpath(arg, NULL);

	if (o->nr_places == PLACES_MAX)
		argp_error(state, "at most %d places of originals", PLACES_MAX);
	if (!real)
		argp_error(state, "--originals=%s: %s", arg, strerror(errno));
	o->places[o->nr_places++] = real;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case KEY_ORIGINALS: add_place(o, state, arg); return 0;
	case KEY_ONCE: o->once = true; return 0;
	case KEY_GIVE_UP: o->give_up_s = md_fleet_number(state, "give-up", arg, 0, 1e6); return 0;
	case KEY_POLL: o->poll_s = md_fleet_number(state, "poll", arg, 0, 1e6); return 0;
	case ARGP_KEY_END:
		if (!o->nr_places)
			argp_error(state, "say where originals are: --originals=DIR");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	NULL,
	"Make the builds that operators have asked for: take a job from the database, optimise the "
	"original by the fleet's profile, and store the plan of the output. Several builders take "
	"different jobs; the job of a builder that is killed is taken again.\v"
	"Exit status: 0 done, 1 failed, 2 usage, 75 the server is gone.",
	children,
	NULL,
	NULL};

static void say(const struct md_build_job *job, const char *text)
{
	char hex[2 * MP_BUILD_ID_MAX + 1];

	mp_id_format_build_id(&job->id, hex);
	md_stats_put_text(hex);
	if (job->options[0])
		putchar(' ');
	md_stats_put_text(job->options);
	fputs(": ", stdout);
	md_stats_put_text(text);
	putchar('\n');
	fflush(stdout);
}

static int status_of(int r, const struct mp_err *err)
{
	md_stats_fail("%s", err->msg);
	return r == -ENOTCONN || r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
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
		return status_of(r, &err);
	return end == MD_BUILD_FAILED ? MD_FLEET_FAILED : MD_FLEET_DONE;
}

static void wait_for_jobs(double seconds)
{
	time_t until = time(NULL) + (time_t)seconds;

	do
		sleep(1);
	while (time(NULL) < until && !md_child_is_stopped());
}

/* Until it is told to stop. A build that fails is the operator's to look at, and no end. */
static int work(struct md_build *build, const struct options *o)
{
	int r = MD_FLEET_DONE;

	while (!md_child_is_stopped()) {
		r = one_job(build);
		if (o->once)
			break;
		if (r == MD_FLEET_LATER)
			PQreset(build->builder.conn);
		if (r == -1 || r == MD_FLEET_LATER)
			wait_for_jobs(o->poll_s);
		r = MD_FLEET_DONE;
	}
	return r == -1 ? MD_FLEET_DONE : r;
}

int md_fleet_command_build(int argc, char **argv)
{
	struct options o = {.give_up_s = GIVE_UP_S, .poll_s = POLL_S};
	struct md_build build = {.say = say};
	int r;

	md_stats_set_program(argv[0]);
	mp_args_parse(&argp, argc, argv, 0, &o);
	mp_stdio_parsed();
	r = md_fleet_access_find(&o.access);
	if (r)
		return r;
	r = md_fleet_access_connect(&o.access, &build.builder.conn);
	if (r)
		return r;
	build.builder.version = md_fleet_version();
	build.builder.give_up_s = o.give_up_s;
	build.database = o.access.config.database;
	build.originals = (struct md_original_places){o.places, o.nr_places};
	md_child_catch_signals();
	r = work(&build, &o);
	PQfinish(build.builder.conn);
	for (size_t i = 0; i < o.nr_places; i++)
		free((char *)o.places[i]);
	return md_stats_finish(r);
}
