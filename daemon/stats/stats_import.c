// SPDX-License-Identifier: Apache-2.0
/*
 * stats_import - the command "import": stores callgrind's exact counts, an instrumented
 * program's, BOLT's fdata, the text of perf script, or ways of branches. Decides which format a file has. A file
 * that cannot be parsed changes nothing.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/import/import.h"
#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/base/infile.h"
#include "libprof/note/counts_file.h"
#include "libprof/cli/progress.h"

#define MP_OPTIONS struct options

enum format {
	FORMAT_GUESS,
	FORMAT_CALLGRIND,
	FORMAT_COUNTERS,
	FORMAT_FDATA,
	FORMAT_PERF,
	FORMAT_WAYS
};

static const char *const format_names[] = {"",
					   [FORMAT_CALLGRIND] = "callgrind",
					   [FORMAT_COUNTERS] = "counters",
					   [FORMAT_FDATA] = "fdata",
					   [FORMAT_PERF] = "perf",
					   [FORMAT_WAYS] = "ways",
					   NULL};

struct options {
	struct md_cli *cli;
	enum format format;
	const char *event;
	const char *binary;
	const char **files;
	size_t nr_files;
};

/* Return: true for files of counters, the only format that is not text. */
static bool is_counters(const struct options *o)
{
	bool from_stdin = !strcmp(o->files[0], "-"), is;
	struct mp_err ignored;
	int fd;

	if (o->format)
		return o->format == FORMAT_COUNTERS;
	fd = from_stdin ? STDIN_FILENO : mp_infile_open(o->files[0], &ignored);
	is = fd >= 0 && mp_counts_file_is(fd);
	if (fd >= 0 && !from_stdin)
		close(fd);
	return is;
}

/* Looks at the first bytes, without moving the file's position. */
static bool is_perf_data(FILE *file)
{
	static const char magic[] = "PERFILE2";
	char found[sizeof(magic) - 1];

	return pread(fileno(file), found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       !memcmp(found, magic, sizeof(found));
}

static const struct mp_option option_table[] = {
	MP_WORD("format", format, format_names, "FORMAT",
		"callgrind, counters, fdata, perf or ways; by default, the file tells, except for ways"),
	MP_VALUE(
		TEXT, "binary", 0, binary, "FILE",
		"counters: the instrumented program or library; fdata, ways: the one that was profiled"),
	MP_VALUE(TEXT, "event", 0, event, "NAME", "perf: take only samples of this event"),
	MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct options *o = options;

	o->files = reallocarray(o->files, o->nr_files + 1, sizeof(*o->files));
	if (!o->files)
		argp_failure(state, MP_EXIT_FAILED, ENOMEM, "%s", arg);
	o->files[o->nr_files++] = arg;
}

static void check(void *options, struct argp_state *state)
{
	const struct options *o = options;

	if (!o->nr_files)
		argp_error(state, "no file given; - is standard input");
	if (o->nr_files > 1 && !is_counters(o))
		argp_error(state, "%s: one file at a time", o->files[1]);
}

static const struct mp_usage usage = {
	.options = option_table,
	.arguments = "FILE...",
	.word = take_word,
	.check = check,
	.doc = "Add what another profiler counted.\v"
	       "callgrind:  valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes --skip-plt=no CMD\n"
	       "counters:   counts of programs that morph-optimize instrument made; give "
	       "--binary=FILE, and any number of files of counts\n"
	       "fdata:      of perf2bolt, merge-fdata or a program that llvm-bolt -instrument made; give "
	       "--binary=FILE\n"
	       "perf:       perf script -G -F comm,pid,tid,time,event,ip,sym,dso --show-mmap-events "
	       "--show-task-events --show-lost-events | morph-stats import -; with the field brstack "
	       "the branch stacks, too\n"
	       "ways:       lines ADDRESS TAKEN FELL of conditional branches; give --binary=FILE",
	.shared = &md_cli_common_argp};

/*
 * fdata begins with "1 main 53 1 main 38 0 1999" or "4 main 53 4 table 8 17". No other format
 * has such lines.
 */
static bool is_fdata(const char *line)
{
	if (!strncmp(line, "no_lbr", 6) || !strcmp(line, "boltedcollection"))
		return true;
	if (line[0] < '0' || line[0] > '5' || line[1] != ' ')
		return false;
	line += strlen(line);
	return isdigit((unsigned char)line[-1]);
}

/*
 * Guesses the format from the first line. callgrind's is a comment or a header key; perf's
 * never is.
 */
static int guess(struct md_lines *lines, enum format *format, struct mp_err *err)
{
	static const char *const keys[] = {"# callgrind",
					   "version:", "creator:", "positions:", "events:"};
	int r = md_lines_next(lines, err);

	*format = FORMAT_PERF;
	if (r <= 0)
		return r;
	lines->repeat_line = true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strncmp(lines->line, keys[i], strlen(keys[i])))
			*format = FORMAT_CALLGRIND;
	if (*format == FORMAT_PERF && is_fdata(lines->line))
		*format = FORMAT_FDATA;
	if (!strcmp(lines->line, "---"))
		return md_lines_fail(lines, err,
				     "YAML; of BOLT's formats only fdata can be imported");
	return 0;
}

/* Refuses a profile of which nothing fits the file: it belongs to another one. */
static int check_fit(const struct md_import *import, const struct md_lines *lines,
		     const char *binary, struct mp_err *err)
{
	const struct md_import_transfers *t = &import->transfers;
	uint64_t seen = t->seen - t->outside + import->ledger.emitted;

	if (!seen || t->counted || t->fell || t->moved || import->ledger.attributed)
		return 0;
	return mp_err_set(err, EBADMSG,
			  "%s: not a profile of %s: %" PRIu64
			  " counts name no function of it, %" PRIu64 " no branch",
			  lines->name, binary, t->unnamed + import->ledger.emitted, t->unfit);
}

static int read_fdata(struct md_import *import, const struct options *o, struct md_lines *lines,
		      struct mp_err *err)
{
	struct mp_session *s = &import->session;
	int r;

	if (!o->binary)
		return mp_err_set(err, EINVAL,
				  "%s: fdata does not name its file: give --binary=FILE",
				  lines->name);
	snprintf(s->why, sizeof(s->why), "BOLT's fdata from %.100s", lines->name);
	r = md_import_fdata(import, lines, o->binary, err);
	return r ? r : check_fit(import, lines, o->binary, err);
}

static int read_ways(struct md_import *import, const struct options *o, struct md_lines *lines,
		     struct mp_err *err)
{
	struct mp_session *s = &import->session;

	if (!o->binary)
		return mp_err_set(err, EINVAL,
				  "%s: ways do not name their file: give --binary=FILE",
				  lines->name);
	snprintf(s->why, sizeof(s->why), "ways of branches from %.100s", lines->name);
	strcpy(s->event, "ways");
	return md_import_ways(import, lines, o->binary, err);
}

static int read_counters(struct md_import *import, const struct options *o, const char *name,
			 struct mp_err *err)
{
	struct mp_session *s = &import->session;

	if (!o->binary)
		return mp_err_set(err, EINVAL,
				  "%s: counters do not name their file: give --binary=FILE", name);
	if (o->nr_files > 1)
		snprintf(s->why, sizeof(s->why), "counters from %.100s and %zu more", name,
			 o->nr_files - 1);
	else
		snprintf(s->why, sizeof(s->why), "counters from %.100s", name);
	return md_import_counters(import, (const char *const *)o->files, o->nr_files, o->binary,
				  err);
}

static int read_file(struct md_import *import, const struct options *o, struct md_lines *lines,
		     struct mp_err *err)
{
	struct mp_session *s = &import->session;
	enum format format = o->format;
	int r;

	strcpy(s->collector, "import");
	if (is_counters(o))
		return read_counters(import, o, lines->name, err);
	r = format ? 0 : guess(lines, &format, err);
	if (r)
		return r;
	if (o->binary && format != FORMAT_FDATA && format != FORMAT_WAYS)
		return mp_err_set(err, EINVAL,
				  "%s: --binary is for counters, fdata and ways: this format names "
				  "its files itself",
				  lines->name);
	if (format == FORMAT_FDATA)
		return read_fdata(import, o, lines, err);
	if (format == FORMAT_WAYS)
		return read_ways(import, o, lines, err);
	if (format == FORMAT_PERF) {
		snprintf(s->why, sizeof(s->why), "perf script text from %.100s", lines->name);
		import->confirms = true;
		return md_import_perf(import, lines, o->event, err);
	}
	import->confirms = true;
	snprintf(s->why, sizeof(s->why), "callgrind's exact counts from %.100s", lines->name);
	strcpy(s->event, "instructions");
	return md_import_callgrind(import, lines, err);
}

/* Numbers of transfers by what became of them, with names for text and JSON. */
struct fate {
	const char *key, *text;
	uint64_t nr;
};
#define NR_FATES 7

static void list_fates(const struct md_import_transfers *t, struct fate *out)
{
	const struct fate fates[NR_FATES] = {
		{"fell_through", "fell through: not taken", t->fell},
		{"outside", "from or to another file", t->outside},
		{"unnamed", "unattributed: name no function of the file", t->unnamed},
		{"unfit", "unattributed: no such branch in the file", t->unfit},
		{"not_in_original", "of moved code: nothing in the original", t->moved},
		{"straight", "more, that moved code ran straight through", t->straight},
		{"memory_events", "lines of memory events skipped", t->nr_skipped},
	};

	memcpy(out, fates, sizeof(fates));
}

static json_t *transfers_json(const struct md_import_transfers *t)
{
	json_t *object = json_object();
	struct fate fates[NR_FATES];

	list_fates(t, fates);
	json_object_set_new(object, "seen", json_integer((json_int_t)t->seen));
	json_object_set_new(object, "counted", json_integer((json_int_t)t->counted));
	for (int i = 0; i < NR_FATES; i++)
		json_object_set_new(object, fates[i].key, json_integer((json_int_t)fates[i].nr));
	return object;
}

static void print_transfers(const struct md_import_transfers *t, size_t nr_modules)
{
	struct fate fates[NR_FATES];

	printf("%" PRIu64 " of %" PRIu64 " transfers counted, in %zu modules\n", t->counted,
	       t->seen, nr_modules);
	list_fates(t, fates);
	for (int i = 0; i < NR_FATES; i++)
		if (fates[i].nr)
			printf("%" PRIu64 " %s\n", fates[i].nr, fates[i].text);
}

static json_t *counters_json(const struct md_import *import)
{
	const struct mp_edge_discrepancy *d = &import->discrepancy;
	json_t *object = json_object();

	json_object_set_new(object, "nr_functions", json_integer(import->nr_counted_funcs));
	json_object_set_new(object, "nr_ran", json_integer(d->nr_ran));
	json_object_set_new(object, "nr_unequal", json_integer(d->nr_unequal));
	json_object_set_new(object, "spare", json_integer((json_int_t)d->spare));
	json_object_set_new(object, "missed", json_integer((json_int_t)d->missed));
	json_object_set_new(object, "negative", json_integer((json_int_t)d->negative));
	json_object_set_new(object, "edges", json_integer((json_int_t)d->total));
	return object;
}

/*
 * Prints the counters' discrepancies, even if they are 0. longjmp, exceptions, exit and lost
 * counts cause them.
 */
static void print_counters(const struct md_import *import)
{
	const struct mp_edge_discrepancy *d = &import->discrepancy;

	printf("%u of %u functions with counters ran; in %u of them the counts in and out differ\n",
	       d->nr_ran, import->nr_counted_funcs, d->nr_unequal);
	if (d->spare)
		printf("%" PRIu64 " of %" PRIu64 " at spare counters missed (%.4f %%)\n", d->missed,
		       d->spare, 100.0 * (double)d->missed / (double)d->spare);
	else if (d->missed)
		printf("%" PRIu64 " missed at spare counters, which counted nothing\n", d->missed);
	if (d->negative)
		printf("%" PRIu64 " would be negative, and are 0\n", d->negative);
}

static void print_ways(const struct md_import_ways *ways)
{
	printf("%" PRIu64 " of %" PRIu64 " ways counted\n", ways->counted, ways->seen);
	if (ways->unfit)
		printf("%" PRIu64 " unattributed: no conditional branch there\n", ways->unfit);
}

static int report(struct md_cli *cli, const struct md_import *import)
{
	const struct mp_ledger *l = &import->ledger;
	const struct md_import_transfers *t = &import->transfers;
	size_t nr = 0, nr_with_edges = 0, nr_either = 0;
	json_t *root, *unattributed;

	for (uint32_t i = 0; i < import->nr_modules; i++) {
		nr += import->modules[i].nr > 0;
		nr_with_edges += import->modules[i].nr_edges > 0;
		nr_either += import->modules[i].nr || import->modules[i].nr_edges ||
			     import->modules[i].nr_ways;
	}
	if (!cli->json) {
		if (import->nr_counted_funcs)
			print_counters(import);
		if (t->seen || t->nr_skipped)
			print_transfers(t, nr_with_edges);
		if (import->ways.seen)
			print_ways(&import->ways);
		if (import->nr_unread_lines)
			printf("%" PRIu64 " lines not understood, and skipped\n",
			       import->nr_unread_lines);
		if (!l->emitted)
			return md_cli_finish(MP_EXIT_DONE);
		printf("%" PRIu64 " of %" PRIu64 " counted, in %zu modules\n", l->attributed,
		       l->emitted, nr);
		for (int i = 0; i < MP_NR_UNATTR; i++)
			if (l->unattributed[i])
				printf("%" PRIu64 " unattributed: %s\n", l->unattributed[i],
				       mp_unattributed_name(i));
		for (int i = 0; i < MP_NR_LOST; i++)
			if (l->lost[i])
				printf("%" PRIu64 " lost: %s\n", l->lost[i], mp_lost_name(i));
		return md_cli_finish(MP_EXIT_DONE);
	}
	root = md_cli_json_new("import");
	unattributed = json_object();
	for (int i = 0; i < MP_NR_UNATTR; i++)
		json_object_set_new(unattributed, mp_unattributed_name(i),
				    json_integer((json_int_t)l->unattributed[i]));
	json_object_set_new(root, "emitted", json_integer((json_int_t)l->emitted));
	json_object_set_new(root, "attributed", json_integer((json_int_t)l->attributed));
	json_object_set_new(root, "unattributed", unattributed);
	json_object_set_new(root, "lost", json_integer((json_int_t)l->lost[MP_LOST_RING_FULL]));
	json_object_set_new(root, "nr_modules", json_integer((json_int_t)nr_either));
	json_object_set_new(root, "unread_lines",
			    json_integer((json_int_t)import->nr_unread_lines));
	json_object_set_new(root, "transfers", transfers_json(t));
	json_object_set_new(root, "ways",
			    json_pack("{s:I, s:I, s:I}", "seen", (json_int_t)import->ways.seen,
				      "counted", (json_int_t)import->ways.counted, "unfit",
				      (json_int_t)import->ways.unfit));
	json_object_set_new(root, "counters", counters_json(import));
	return md_cli_json_print(root);
}

/* Return: when the data was collected: the time when the file was written, if known. */
static int64_t time_of(FILE *file, int64_t now_s)
{
	struct stat st;

	if (!fstat(fileno(file), &st) && S_ISREG(st.st_mode) && st.st_mtime > 0 &&
	    st.st_mtime < now_s)
		return st.st_mtime;
	return now_s;
}

static int import_into(struct md_cli *cli, struct md_import *import, int64_t when_s)
{
	struct mp_store *store;
	struct mp_err err = {0};
	sigset_t before;
	int r;

	mp_progress_say("storing");
	md_interrupt_hold(&before);
	r = md_cli_open(cli, MP_STORE_WRITE, &store);
	if (r) {
		md_interrupt_release(&before);
		return r;
	}
	import->session.start_s = when_s;
	import->session.last_s = time(NULL);
	r = md_import_store(import, store, when_s, &err);
	mp_store_close(store);
	md_interrupt_release(&before);
	mp_progress_stop();
	return r ? md_cli_fail("%s", err.msg) : report(cli, import);
}

/* Opens the existing database for its list of outputs. Return: NULL: there is none. */
static struct mp_store *open_list(const struct md_cli *cli)
{
	struct mp_store *store = NULL;
	char path[PATH_MAX];

	if (cli->db)
		snprintf(path, sizeof(path), "%s", cli->db);
	else if (mp_store_default_path(path, sizeof(path), false, NULL))
		return NULL;
	return mp_store_open(path, MP_STORE_READ, &store, NULL) ? NULL : store;
}

int md_stats_import(struct md_cli *cli, int argc, char **argv)
{
	struct options o = {.cli = cli};
	struct md_lines lines = {0};
	struct md_import *import;
	struct mp_err err = {0};
	int64_t when_s;
	bool from_stdin;
	int r;

	md_cli_parse(&usage, argc, argv, &o, cli);
	from_stdin = !strcmp(o.files[0], "-");
	lines.name = from_stdin ? "standard input" : o.files[0];
	lines.file = stdin;
	if (!from_stdin && mp_infile_stream(o.files[0], &lines.file, &err)) {
		r = md_cli_fail("%s", err.msg);
		goto out;
	}
	if (is_perf_data(lines.file)) {
		r = md_cli_fail("%s: is perf's own format; import the text that perf prints of it: "
				"perf script -G -F comm,pid,tid,time,event,ip,sym,dso "
				"--show-mmap-events --show-task-events --show-lost-events",
				lines.name);
		goto out_file;
	}
	when_s = time_of(lines.file, time(NULL));
	mp_progress_start("morph-stats", true);
	mp_progress_say("reading %s", lines.name);
	import = md_import_new();
	if (import)
		import->list = open_list(cli);
	r = import ? read_file(import, &o, &lines, &err)
		   : mp_err_set(&err, ENOMEM, "out of memory");
	if (import)
		mp_store_close(import->list);
	if (r)
		r = md_cli_fail("%s", err.msg);
	else if (!import->ledger.emitted && !import->transfers.seen && import->nr_counted_funcs)
		r = md_cli_fail("%s: nothing was counted: none of the %u functions with counters "
				"ran",
				lines.name, import->nr_counted_funcs);
	else if (!import->ledger.emitted && !import->transfers.seen && !import->ways.seen)
		r = md_cli_fail("%s: holds no sample", lines.name);
	else
		r = import_into(cli, import, when_s);
	md_import_free(import);
	free(lines.line);
out_file:
	if (!from_stdin)
		fclose(lines.file);
out:
	free(o.files);
	return r;
}
