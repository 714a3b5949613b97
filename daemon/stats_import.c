// SPDX-License-Identifier: Apache-2.0
/*
 * stats_import - the command "import": callgrind's exact counts, or the text of perf script, into
 * the store. Decides which of the two a file is; a file that does not parse leaves no trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/import.h"
#include "daemon/stats.h"

enum format {
	FORMAT_GUESS,
	FORMAT_CALLGRIND,
	FORMAT_PERF
};

struct options {
	struct md_stats *stats;
	enum format format;
	const char *event;
	const char *file;
};

enum {
	KEY_FORMAT = 256,
	KEY_EVENT
};

static const struct argp_option option_table[] = {
	{"format", KEY_FORMAT, "FORMAT", 0, "callgrind or perf; as the file looks by default", 0},
	{"event", KEY_EVENT, "NAME", 0, "perf: take only samples of this event", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = o->stats; return 0;
	case KEY_FORMAT:
		if (!strcmp(arg, "callgrind"))
			o->format = FORMAT_CALLGRIND;
		else if (!strcmp(arg, "perf"))
			o->format = FORMAT_PERF;
		else
			argp_error(state, "--format=%s: neither callgrind nor perf", arg);
		return 0;
	case KEY_EVENT: o->event = arg; return 0;
	case ARGP_KEY_ARG:
		if (o->file)
			argp_error(state, "%s: one file at a time", arg);
		o->file = arg;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_error(state, "which file? - is standard input"); return EINVAL;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	"FILE",
	"Add what another profiler counted.\v"
	"callgrind:  valgrind --tool=callgrind --dump-instr=yes CMD\n"
	"perf:       perf script -G -F comm,pid,tid,time,event,ip,sym,dso --show-mmap-events "
	"--show-task-events --show-lost-events | morph-stats import -",
	children,
	0,
	0};

/* The first line of a callgrind file is a comment or a header key; perf's never is. */
static int guess(struct md_lines *lines, enum format *format, struct mp_err *err)
{
	static const char *const keys[] = {"# callgrind",
					   "version:", "creator:", "positions:", "events:"};
	int r = md_lines_next(lines, err);

	*format = FORMAT_PERF;
	if (r <= 0)
		return r;
	lines->again = true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strncmp(lines->line, keys[i], strlen(keys[i])))
			*format = FORMAT_CALLGRIND;
	return 0;
}

static int read_file(struct md_import *import, const struct options *o, struct md_lines *lines,
		     struct mp_err *err)
{
	struct mp_session *s = &import->session;
	enum format format = o->format;
	int r = format ? 0 : guess(lines, &format, err);

	if (r)
		return r;
	strcpy(s->collector, "import");
	if (format == FORMAT_PERF) {
		snprintf(s->why, sizeof(s->why), "perf script text from %.100s", lines->name);
		return md_import_perf(import, lines, o->event, err);
	}
	snprintf(s->why, sizeof(s->why), "callgrind's exact counts from %.100s", lines->name);
	strcpy(s->event, "instructions");
	return md_import_callgrind(import, lines, err);
}

static int report(struct md_stats *stats, const struct md_import *import)
{
	const struct mp_ledger *l = &import->ledger;
	size_t nr = 0;
	json_t *root, *unattributed;

	for (uint32_t i = 0; i < import->nr_modules; i++)
		nr += import->modules[i].nr > 0;
	if (!stats->json) {
		printf("%" PRIu64 " of %" PRIu64 " counted, in %zu modules\n", l->attributed,
		       l->emitted, nr);
		for (int i = 0; i < MP_NR_UNATTR; i++)
			if (l->unattributed[i])
				printf("%" PRIu64 " unattributed: %s\n", l->unattributed[i],
				       mp_unattributed_name(i));
		for (int i = 0; i < MP_NR_LOST; i++)
			if (l->lost[i])
				printf("%" PRIu64 " lost: %s\n", l->lost[i], mp_lost_name(i));
		return md_stats_finish(MD_EXIT_DONE);
	}
	root = md_stats_json_new("import");
	unattributed = json_object();
	for (int i = 0; i < MP_NR_UNATTR; i++)
		json_object_set_new(unattributed, mp_unattributed_name(i),
				    json_integer((json_int_t)l->unattributed[i]));
	json_object_set_new(root, "emitted", json_integer((json_int_t)l->emitted));
	json_object_set_new(root, "attributed", json_integer((json_int_t)l->attributed));
	json_object_set_new(root, "unattributed", unattributed);
	json_object_set_new(root, "lost", json_integer((json_int_t)l->lost[MP_LOST_RING_FULL]));
	json_object_set_new(root, "nr_modules", json_integer((json_int_t)nr));
	return md_stats_json_print(root);
}

/* What is in the file happened when it was written, as far as we can know. */
static int64_t time_of(FILE *file, int64_t now_s)
{
	struct stat st;

	if (!fstat(fileno(file), &st) && S_ISREG(st.st_mode) && st.st_mtime > 0 &&
	    st.st_mtime < now_s)
		return st.st_mtime;
	return now_s;
}

static int import_into(struct md_stats *stats, struct md_import *import, int64_t when_s)
{
	struct mp_store *store;
	struct mp_err err = {0};
	int r = md_stats_open(stats, MP_STORE_WRITE, &store);

	if (r)
		return r;
	import->session.start_s = when_s;
	import->session.last_s = time(NULL);
	r = md_import_store(import, store, when_s, &err);
	mp_store_close(store);
	return r ? md_stats_fail("%s", err.msg) : report(stats, import);
}

int md_stats_import(struct md_stats *stats, int argc, char **argv)
{
	struct options o = {.stats = stats};
	struct md_lines lines = {0};
	struct md_import *import;
	struct mp_err err = {0};
	struct stat st;
	int64_t when_s;
	bool from_stdin;
	int r;

	md_stats_parse(&argp, argc, argv, &o);
	from_stdin = !strcmp(o.file, "-");
	lines.name = from_stdin ? "standard input" : o.file;
	lines.file = from_stdin ? stdin : fopen(o.file, "re");
	if (!lines.file)
		return md_stats_fail("%s: %s", o.file, strerror(errno));
	if (!fstat(fileno(lines.file), &st) && S_ISDIR(st.st_mode)) {
		fclose(lines.file);
		return md_stats_fail("%s: is a directory", o.file);
	}
	when_s = time_of(lines.file, time(NULL));
	import = md_import_new();
	r = import ? read_file(import, &o, &lines, &err)
		   : mp_err_set(&err, ENOMEM, "out of memory");
	if (r)
		r = md_stats_fail("%s", err.msg);
	else if (!import->ledger.emitted)
		r = md_stats_fail("%s: holds no sample", lines.name);
	else
		r = import_into(stats, import, when_s);
	md_import_free(import);
	free(lines.line);
	if (!from_stdin)
		fclose(lines.file);
	return r;
}
