// SPDX-License-Identifier: Apache-2.0
/*
 * stats_merge - the command "merge": adds up databases. Decides that the result appears
 * complete or not at all, and that nothing is added twice by accident.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/base/defaults.h"
#include "libprof/cli/progress.h"
#include "libprof/base/newfile.h"
#include "libprof/store/whole/store_merge.h"

#define MP_OPTIONS struct merge

struct input {
	const char *path;
	struct mp_store *store;
	dev_t dev;
	ino_t ino;
	struct mp_merge_stats cli;
};

struct merge {
	struct md_cli *cli;
	const char *out;
	struct input *inputs;
	size_t nr;
	bool again;
};

static const struct mp_option options[] = {
	MP_FLAG("again", again, "Add sessions that OUT-DB seems to have already"), MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct merge *m = options;
	struct input *bigger;

	if (!m->out) {
		m->out = arg;
		return;
	}
	bigger = realloc(m->inputs, (m->nr + 1) * sizeof(*bigger));
	if (!bigger)
		argp_failure(state, MP_EXIT_FAILED, ENOMEM, "%s", arg);
	m->inputs = bigger;
	memset(&bigger[m->nr], 0, sizeof(*bigger));
	bigger[m->nr++].path = arg;
}

static void check(void *options, struct argp_state *state)
{
	const struct merge *m = options;

	if (!m->nr)
		argp_error(state, "give OUT-DB and at least one database to add to it");
	if (m->cli->db)
		argp_error(state, "merge takes its databases as arguments, not with --db");
}

static const struct mp_usage usage = {
	.options = options,
	.arguments = "OUT-DB IN-DB...",
	.word = take_word,
	.check = check,
	.doc = "Add databases up into OUT-DB, which is created if it does not exist.",
	.shared = &md_cli_common_argp};

/* ---- inputs -------------------------------------------------------------------------------- */

/* Opens and checks all inputs before anything is written. Return: exit status. */
static int open_inputs(struct merge *m)
{
	struct stat out, st;
	bool exists = !stat(m->out, &out);

	for (size_t i = 0; i < m->nr; i++) {
		struct input *in = &m->inputs[i];
		struct mp_err err = {0};
		int r;

		mp_progress_say("checking %s", in->path);
		r = mp_store_open(in->path, MP_STORE_READ, &in->store, &err);

		if (!r)
			r = mp_store_begin(in->store, &err);
		if (!r)
			r = mp_store_check(in->store, &err);
		if (r) {
			md_cli_fail("%s", err.msg);
			return r == -ENOENT ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
		}
		if (stat(in->path, &st))
			return md_cli_fail("%s: %s", in->path, strerror(errno));
		in->dev = st.st_dev;
		in->ino = st.st_ino;
		if (exists && st.st_dev == out.st_dev && st.st_ino == out.st_ino)
			return md_cli_fail("%s: is OUT-DB itself", in->path);
		for (size_t k = 0; k < i && !m->again; k++)
			if (m->inputs[k].dev == in->dev && m->inputs[k].ino == in->ino)
				return md_cli_fail("%s: is given twice", in->path);
	}
	return 0;
}

/* ---- output -------------------------------------------------------------------------------- */

static int add_all(struct merge *m, struct mp_store *out, struct mp_err *err)
{
	int r = mp_store_begin(out, err);

	if (r)
		return r;
	for (size_t i = 0; i < m->nr && !r; i++) {
		mp_progress_say("adding %s (%zu of %zu)", m->inputs[i].path, i + 1, m->nr);
		r = mp_store_merge(out, m->inputs[i].store, m->again, &m->inputs[i].cli, err);
	}
	mp_progress_say("checking the result");
	if (!r)
		r = mp_store_check(out, err);
	if (!r)
		return mp_store_commit(out, err);
	mp_store_rollback(out);
	return r;
}

static int merge_into(struct merge *m, const char *path)
{
	struct mp_store *out;
	struct mp_err err = {0};
	int r = mp_store_open(path, MP_STORE_WRITE, &out, &err);

	if (!r) {
		r = add_all(m, out, &err);
		mp_store_close(out);
	}
	if (r == -EEXIST)
		return md_cli_fail("%s; --again adds it once more", err.msg);
	return r ? md_cli_fail("%s", err.msg) : 0;
}

/* Adds to an existing database, completely or not at all, even if a signal comes. */
static int add_to(struct merge *m)
{
	sigset_t before;
	int r;

	md_interrupt_hold(&before);
	r = merge_into(m, m->out);
	md_interrupt_release(&before);
	return r;
}

static void remove_database(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char name[MP_PATH_ROOM];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

/* Gives the result its name once it is complete. Never replaces a file. */
static int publish(const char *temporary, const char *path)
{
	char name[MP_PATH_ROOM], *dir;
	int fd, r;

	snprintf(name, sizeof(name), "%s-wal", temporary);
	if (!access(name, F_OK))
		return md_cli_fail("%s: could not be completed", temporary);
	r = renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE);
	if (r && (errno == EINVAL || errno == ENOSYS)) {
		r = link(temporary, path);
		if (!r)
			unlink(temporary);
	}
	if (r)
		return md_cli_fail("%s: %s", path, strerror(errno));
	snprintf(name, sizeof(name), "%s", path);
	dir = dirname(name);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	return 0;
}

static int make_new(struct merge *m)
{
	char temporary[PATH_MAX];
	mode_t mask = umask(0);
	struct mp_err err;
	sigset_t before;
	int fd, r;

	umask(mask);
	if (mp_directory_check(m->out, &err))
		return md_cli_fail("%s", err.msg);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", m->out) >= (int)sizeof(temporary))
		return md_cli_fail("the path of the database is too long");
	md_interrupt_hold(&before);
	fd = mkstemp(temporary);
	if (fd >= 0)
		md_interrupt_unlinks(temporary);
	md_interrupt_release(&before);
	if (fd < 0)
		return md_cli_fail("%s: %s", m->out, strerror(errno));
	fchmod(fd, 0644 & ~mask);
	close(fd);
	r = merge_into(m, temporary);
	if (!r)
		r = publish(temporary, m->out);
	if (r)
		remove_database(temporary);
	md_interrupt_unlinks(NULL);
	return r;
}

/* ---- report -------------------------------------------------------------------------------- */

static json_t *stats_json(const struct mp_merge_stats *cli)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "samples", (json_int_t)cli->nr_samples,
			 "transfers", (json_int_t)cli->nr_transfers, "ways",
			 (json_int_t)cli->nr_ways, "nr_modules", (json_int_t)cli->nr_modules,
			 "nr_sessions", (json_int_t)cli->nr_sessions);
}

static int report(const struct merge *m)
{
	json_t *root, *inputs;

	if (!m->cli->json) {
		for (size_t i = 0; i < m->nr; i++) {
			const struct mp_merge_stats *s = &m->inputs[i].cli;

			md_cli_put_text(m->inputs[i].path);
			printf(": %" PRIu64 " samples", s->nr_samples);
			if (s->nr_transfers)
				printf(" and %" PRIu64 " transfers", s->nr_transfers);
			if (s->nr_ways)
				printf(" and %" PRIu64 " ways of branches", s->nr_ways);
			printf(" of %zu modules in %zu sessions added\n", s->nr_modules,
			       s->nr_sessions);
		}
		return md_cli_finish(MP_EXIT_DONE);
	}
	root = md_cli_json_new("merge");
	inputs = json_array();
	for (size_t i = 0; i < m->nr; i++) {
		json_t *input = stats_json(&m->inputs[i].cli);

		json_object_set_new(input, "path", mp_json_string(m->inputs[i].path));
		json_array_append_new(inputs, input);
	}
	json_object_set_new(root, "output", mp_json_string(m->out));
	json_object_set_new(root, "inputs", inputs);
	return md_cli_json_print(root);
}

int md_stats_merge(struct md_cli *cli, int argc, char **argv)
{
	struct merge m = {.cli = cli};
	struct stat st;
	int r;

	md_cli_parse(&usage, argc, argv, &m, cli);
	mp_progress_start("morph-stats", true);
	r = open_inputs(&m);
	if (!r && stat(m.out, &st) && errno == ENOENT)
		r = make_new(&m);
	else if (!r)
		r = add_to(&m);
	mp_progress_stop();
	if (!r)
		r = report(&m);
	for (size_t i = 0; i < m.nr; i++)
		mp_store_close(m.inputs[i].store);
	free(m.inputs);
	return r;
}
