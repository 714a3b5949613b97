// SPDX-License-Identifier: Apache-2.0
/* morph_report - the command "report": writes the page about the machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/morph/morph.h"
#include "daemon/morph/report.h"
#include "daemon/stats/interrupt.h"
#include "libprof/base/outfile.h"
#include "libprof/base/text.h"
#include "libprof/cli/program.h"
#include "libprof/cli/progress.h"

#define MAX_ESTIMATES 25
#define MAX_PICTURES  4

struct asked {
	struct md_stats *stats;
	const char *output;
	int64_t since_s;
	struct mp_store *store;
	struct md_machine machine;
	struct md_collector collector;
	struct mp_decision *decisions;
	size_t nr_decisions;
	struct md_report_picture pictures[MAX_PICTURES];
	size_t nr_pictures;
};

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0, "Write FILE instead of to standard output", 0},
	MD_MORPH_SINCE_OPTION,
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct asked *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = a->stats; return 0;
	case 'o': a->output = arg; return 0;
	case 's': md_stats_since(state, arg, &a->since_s); return 0;
	case ARGP_KEY_ARG: argp_error(state, "%s: too many arguments", arg); return EINVAL;
	case ARGP_KEY_END:
		if (a->stats->json && !a->output)
			argp_error(state, "--json needs --output: the page goes to the file");
		if (!a->output && isatty(STDOUT_FILENO))
			argp_error(state, "the page is HTML: name a file with --output=FILE");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	options,
	parse,
	NULL,
	"Write an HTML page about this machine: what its time goes to, what was made faster and by "
	"how much, what was decided, where the code that runs lies. The page needs no network.",
	children,
	0,
	0};

/* Optimised programs first, since their pictures show both versions. */
static void draw_pictures(struct asked *a)
{
	for (int optimised = 1; optimised >= 0; optimised--)
		for (size_t i = 0; i < a->machine.nr_programs; i++) {
			const struct md_machine_program *p = &a->machine.programs[i];

			if (a->nr_pictures == MAX_PICTURES || !p->estimated ||
			    md_machine_is_optimised(p) != optimised)
				continue;
			mp_progress_say("drawing %s", p->path);
			if (!md_report_picture_draw(a->store, p, &a->pictures[a->nr_pictures],
						    NULL))
				a->nr_pictures++;
		}
}

static int write_page(struct asked *a)
{
	char host[128] = "this machine";
	const struct md_report report = {.machine = &a->machine,
					 .collector = &a->collector,
					 .decisions = a->decisions,
					 .nr_decisions = a->nr_decisions,
					 .pictures = a->pictures,
					 .nr_pictures = a->nr_pictures,
					 .host = host,
					 .version = mp_program_version(),
					 .when_s = (int64_t)time(NULL)};
	const char *inputs[] = {a->stats->path, NULL};
	struct mp_outfile out;
	struct mp_err err = {0};
	struct stat st;
	json_t *root;

	gethostname(host, sizeof(host) - 1);
	if (mp_outfile_check(a->output, inputs, &err) ||
	    mp_outfile_open(a->output, md_interrupt_unlinks, &out, &err))
		return md_stats_fail("%s", err.msg);
	md_report_write(&report, out.file);
	if (mp_outfile_commit(&out, &err))
		return md_stats_fail("%s", err.msg);
	if (!a->stats->json)
		return md_stats_finish(MP_EXIT_DONE);
	root = md_stats_json_new("report");
	json_object_set_new(root, "output", md_stats_json_string(a->output));
	json_object_set_new(root, "bytes",
			    json_integer(stat(a->output, &st) ? 0 : (json_int_t)st.st_size));
	json_object_set_new(root, "pictures", json_integer((json_int_t)a->nr_pictures));
	return md_stats_json_print(root);
}

int md_morph_report(struct md_stats *stats, int argc, char **argv)
{
	struct asked a = {.stats = stats};
	struct mp_err err = {0};
	int r;

	md_stats_parse(&argp, argc, argv, &a);
	r = md_morph_load(stats, a.since_s, &a.store, &a.machine);
	if (r)
		return r;
	mp_progress_start("morph", false);
	mp_progress_say("estimating gains");
	md_collector_look(stats->path, &a.collector);
	if (md_machine_estimate(&a.machine, a.store, MAX_ESTIMATES, 12 * MD_MORPH_ESTIMATE_S,
				a.since_s))
		r = md_stats_fail("out of memory");
	else if (!a.machine.nr_programs)
		r = (md_stats_note("%s: holds no samples", stats->path),
		     md_morph_nothing_collected());
	else if (mp_store_list_history(a.store, NULL, 0, &a.decisions, &a.nr_decisions, &err))
		r = md_stats_fail("%s", err.msg);
	if (!r) {
		draw_pictures(&a);
		mp_progress_stop();
		r = write_page(&a);
	}
	mp_progress_stop();
	for (size_t i = 0; i < a.nr_pictures; i++)
		free(a.pictures[i].svg);
	mp_store_free_history(a.decisions, a.nr_decisions);
	md_machine_fini(&a.machine);
	mp_store_close(a.store);
	return r;
}
