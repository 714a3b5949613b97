// SPDX-License-Identifier: Apache-2.0
/* advice - writes the commands that follow morph-optimize, with the names of this run. */
#include "editor/cli/advice.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "editor/base/output_name.h"
#include "libprof/base/defaults.h"
#include "libprof/store/store.h"

/* With this many samples, no test program took more branches (Documentation/lab/results.md). */
#define GOOD_SAMPLES 30000

/* Write @text, quoted where a shell needs it, as one word. */
static void put_word(FILE *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./:@%,";

	if (*text && !text[strspn(text, plain)]) {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	}
	fputc('\'', out);
}

/* Write @path with a '/' in it, so that no program takes it for an option. */
static void put_path(FILE *out, const char *path)
{
	if (!strchr(path, '/'))
		fputs("./", out);
	put_word(out, path);
}

static void put_db(FILE *out, const char *db)
{
	if (!db)
		return;
	fputs(" --db=", out);
	put_word(out, db);
}

static void put_audit(FILE *out, const struct me_optimize_options *o, bool library)
{
	char usual[PATH_MAX];

	fputs("morph-audit ", out);
	if (library)
		fputs("--library=", out);
	put_path(out, o->input);
	if (me_output_name(o->input, usual, sizeof(usual), NULL) || strcmp(usual, o->output)) {
		fputc(' ', out);
		put_path(out, o->output);
	}
	fputs(library ? " -- COMMAND ARGS" : " -- ARGS", out);
}

void me_advice_next(FILE *out, const struct me_optimize_options *o, const char *db,
		    const struct me_optimize_report *r)
{
	fputs("  is it faster here?\n    ", out);
	put_audit(out, o, r->library);
	fputs("\n  replace the file, and keep the original (`morph-optimize restore' puts it back)\n"
	      "    morph-optimize",
	      out);
	put_db(out, db);
	if (o->min_samples != MP_MIN_SAMPLES)
		fprintf(out, " --min-samples=%" PRIu64, o->min_samples);
	fputs(" --in-place ", out);
	put_path(out, o->input);
	fputc('\n', out);
}

/* The sampling rate of the last collection in the database @path; 0: unknown. */
static uint32_t last_rate(const char *path, char *collector, size_t size)
{
	struct mp_session *sessions = NULL;
	struct mp_store *store;
	size_t nr = 0;
	uint32_t rate = 0;

	if (mp_store_open(path, MP_STORE_READ, &store, NULL))
		return 0;
	if (mp_store_list_sessions(store, &sessions, &nr, NULL))
		nr = 0;
	for (size_t i = 0; i < nr && !rate; i++) {
		const struct mp_session *s = &sessions[i];

		if (!strcmp(s->collector, "import") || !strcmp(s->collector, "replay"))
			continue;
		rate = s->rate_hz;
		snprintf(collector, size, "%s", s->collector);
	}
	free(sessions);
	mp_store_close(store);
	return rate;
}

/* "0.3 s", "14 s", "25 min" */
static void put_time(FILE *out, double seconds)
{
	if (seconds < 10)
		fprintf(out, "%.1f s", seconds);
	else if (seconds < 120)
		fprintf(out, "%.0f s", seconds);
	else
		fprintf(out, "%.0f min", seconds / 60);
}

static void put_duration(FILE *out, uint64_t missing, uint32_t rate)
{
	fprintf(out, "%" PRIu64 " more samples take ", missing);
	put_time(out, (double)missing / rate);
	if (missing >= GOOD_SAMPLES)
		return;
	fprintf(out, ", %d take ", GOOD_SAMPLES);
	put_time(out, (double)GOOD_SAMPLES / rate);
	fputs(" and lay the code out better", out);
}

/* True if @pid executes the file @want. */
static bool runs_file(int pid, const struct stat *want)
{
	struct stat st;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	return !stat(name, &st) && st.st_dev == want->st_dev && st.st_ino == want->st_ino;
}

/* The parent of @pid; 0 if @pid has exited. */
static int parent_of(int pid)
{
	char name[64], text[512], *end;
	int parent = 0;
	size_t n;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	f = fopen(name, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	end = strrchr(text, ')'); /* the program's name may hold brackets, too */
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* A process that runs @path, while its parent does not: --pid includes its children. 0: none. */
static int find_running(const char *path)
{
	int pid, parent, found = 0, depth;
	struct dirent *entry;
	struct stat want;
	DIR *dir;

	dir = stat(path, &want) ? NULL : opendir("/proc");
	while (dir && !found && (entry = readdir(dir))) {
		pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
		if (pid && runs_file(pid, &want))
			found = pid;
	}
	if (dir)
		closedir(dir);
	/* A server's workers run the same file as their parent. */
	for (depth = 0; found && depth < 64; depth++) {
		parent = parent_of(found);
		if (parent <= 1 || !runs_file(parent, &want))
			break;
		found = parent;
	}
	return found;
}

/*
 * For servers, which usually run already or are started by something else. To sample a
 * running process needs root. Root has another default database than the user, so the
 * command names the user's.
 */
static void put_running(FILE *out, const struct me_optimize_options *o, const char *db)
{
	int pid = find_running(o->input);

	if (pid)
		fprintf(out, "  or, as root, of process %d, which runs this file now:\n", pid);
	else
		fputs("  or, as root, of a program that runs already, such as a server:\n", out);
	fputs("    morphd run", out);
	put_db(out, db || !geteuid() ? db : o->db);
	fprintf(out, " --rate=%d --pid=", MP_RUN_RATE_HZ);
	if (pid)
		fprintf(out, "%d\n", pid);
	else
		fputs("PID\n", out);
	fputs("    Ctrl-C ends the collection\n", out);
}

void me_advice_collect(FILE *out, const struct me_optimize_options *o, const char *db,
		       const struct me_optimize_report *r)
{
	uint64_t seen = r->samples + r->transfers;
	uint64_t missing = o->min_samples > seen ? o->min_samples - seen : 0;
	char collector[16] = "";
	uint32_t rate;

	fputs("  collect a profile:\n    morphd run", out);
	put_db(out, db);
	if (r->library) {
		fputs(" -- COMMAND ARGS\n    with a command that uses ", out);
		put_path(out, o->input);
	} else {
		fputs(" -- ", out);
		put_path(out, o->input);
		fputs(" ARGS", out);
	}
	fprintf(out,
		"\n  at %d samples per second of processor time, the default of morphd run:\n    ",
		MP_RUN_RATE_HZ);
	put_duration(out, missing, MP_RUN_RATE_HZ);
	fputc('\n', out);
	put_running(out, o, db);
	rate = o->db ? last_rate(o->db, collector, sizeof(collector)) : 0;
	if (!rate || rate == MP_RUN_RATE_HZ)
		return;
	fprintf(out,
		"  at %" PRIu32 " samples per second, the rate of the last collection in "
		"%s (%s):\n    ",
		rate, o->db, collector);
	put_duration(out, missing, rate);
	fputc('\n', out);
}
