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
#include "libprof/cli/program.h"
#include "libprof/cli/progress.h"

#define MP_OPTIONS struct asked

#define MAX_PICTURES 4

struct asked {
	struct md_cli *cli;
	const char *output;
	int64_t since_s;
	struct mp_store *store;
	struct md_machine machine;
	struct md_collector collector;
	struct md_saved saved;
	enum {
		HTML,
		PROMETHEUS
	} format;
	struct mp_decision *decisions;
	size_t nr_decisions;
	struct md_report_picture pictures[MAX_PICTURES];
	size_t nr_pictures;
};

static const char *const formats[] = {"html", "prometheus", NULL};

static const struct mp_option options[] = {MP_VALUE(TEXT, "output", 'o', output, "FILE",
						    "Write FILE instead of to standard output"),
					   MP_WORD("format", format, formats, "html|prometheus",
						   "A page (default), or numbers for monitoring"),
					   MD_OPTION_SINCE, MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct asked *a = options;

	if (a->cli->json && !a->output)
		argp_error(state, "--json needs --output: the page goes to the file");
	if (!a->output && a->format == HTML && isatty(STDOUT_FILENO))
		argp_error(state, "the page is HTML: name a file with --output=FILE");
}

static const struct mp_usage usage = {
	.options = options,
	.check = check,
	.doc = "Write an HTML page about this machine: what its time goes to, what was made faster and by "
	       "how much, what was decided, where the code that runs lies. The page needs no network. With "
	       "--format=prometheus, write what was saved in the last days as metrics.",
	.shared = &md_cli_common_argp};

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
					 .saved = &a->saved,
					 .decisions = a->decisions,
					 .nr_decisions = a->nr_decisions,
					 .pictures = a->pictures,
					 .nr_pictures = a->nr_pictures,
					 .host = host,
					 .version = mp_program_version(),
					 .when_s = (int64_t)time(NULL)};
	const char *inputs[] = {a->cli->path, NULL};
	struct mp_outfile out;
	struct mp_err err = {0};
	struct stat st;
	json_t *root;

	gethostname(host, sizeof(host) - 1);
	if (mp_outfile_check(a->output, inputs, &err) ||
	    mp_outfile_open(a->output, md_interrupt_unlinks, &out, &err))
		return md_cli_fail("%s", err.msg);
	if (a->format == HTML)
		md_report_write(&report, out.file);
	else
		md_report_put_metrics(&a->saved, &a->collector, out.file);
	if (mp_outfile_commit(&out, &err))
		return md_cli_fail("%s", err.msg);
	if (!a->cli->json)
		return md_cli_finish(MP_EXIT_DONE);
	root = md_cli_json_new("report");
	json_object_set_new(root, "output", mp_json_string(a->output));
	json_object_set_new(root, "bytes",
			    json_integer(stat(a->output, &st) ? 0 : (json_int_t)st.st_size));
	json_object_set_new(root, "pictures", json_integer((json_int_t)a->nr_pictures));
	return md_cli_json_print(root);
}

int md_morph_report(struct md_cli *cli, int argc, char **argv)
{
	struct asked a = {.cli = cli};
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &a, cli);
	r = md_morph_load(cli, a.since_s, &a.store, &a.machine);
	if (r)
		return r;
	mp_progress_start("morph", false);
	mp_progress_say("estimating gains");
	md_collector_look(cli->path, &a.collector);
	if (a.format == HTML && md_machine_estimate(&a.machine, a.store, MD_MORPH_ESTIMATES,
						    12 * MD_MORPH_ESTIMATE_S, a.since_s))
		r = md_cli_fail("out of memory");
	else if (!a.machine.nr_programs)
		r = (md_cli_note("%s: holds no samples", cli->path), md_morph_nothing_collected());
	else if (mp_store_list_history(a.store, NULL, 0, &a.decisions, &a.nr_decisions, &err))
		r = md_cli_fail("%s", err.msg);
	else if (md_saved_load(a.store, &a.machine, (int64_t)time(NULL), &a.saved, &err))
		r = md_cli_fail("%s", err.msg);
	if (!r) {
		if (a.format == HTML)
			draw_pictures(&a);
		mp_progress_stop();
		r = write_page(&a);
	}
	mp_progress_stop();
	for (size_t i = 0; i < a.nr_pictures; i++)
		free(a.pictures[i].svg);
	md_saved_fini(&a.saved);
	mp_store_free_history(a.decisions, a.nr_decisions);
	md_machine_fini(&a.machine);
	mp_store_close(a.store);
	return r;
}
