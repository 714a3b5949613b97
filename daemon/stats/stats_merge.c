// SPDX-License-Identifier: Apache-2.0
/*
 * stats_merge - the command "merge": adds up databases. Decides that the result appears
 * complete or not at all, and that nothing is added twice by accident.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/cli/progress.h"
#include "libprof/base/newfile.h"
#include "libprof/store/whole/store_merge.h"

struct input {
	const char *path;
	struct mp_store *store;
	dev_t dev;
	ino_t ino;
	struct mp_merge_stats stats;
};

struct merge {
	struct md_stats *stats;
	const char *out;
	struct input *inputs;
	size_t nr;
	bool again;
};

enum {
	KEY_AGAIN = 256
};

static const struct argp_option options[] = {
	{"again", KEY_AGAIN, NULL, 0, "Add sessions that OUT-DB seems to have already", 0},
	{0},
};

static error_t add_input(struct merge *m, char *arg)
{
	struct input *bigger = realloc(m->inputs, (m->nr + 1) * sizeof(*bigger));

	if (!bigger)
		return ENOMEM;
	m->inputs = bigger;
	memset(&bigger[m->nr], 0, sizeof(*bigger));
	bigger[m->nr++].path = arg;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct merge *m = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = m->stats; return 0;
	case KEY_AGAIN: m->again = true; return 0;
	case ARGP_KEY_ARG:
		if (m->out)
			return add_input(m, arg);
		m->out = arg;
		return 0;
	case ARGP_KEY_END:
		if (!m->nr)
			argp_error(state, "give OUT-DB and at least one database to add to it");
		if (m->stats->db)
			argp_error(state, "merge takes its databases as arguments, not with --db");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {options,
				 parse,
				 "OUT-DB IN-DB...",
				 "Add databases up into OUT-DB, which is created if it does not "
				 "exist.",
				 children,
				 0,
				 0};

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
			md_stats_fail("%s", err.msg);
			return r == -ENOENT ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
		}
		if (stat(in->path, &st))
			return md_stats_fail("%s: %s", in->path, strerror(errno));
		in->dev = st.st_dev;
		in->ino = st.st_ino;
		if (exists && st.st_dev == out.st_dev && st.st_ino == out.st_ino)
			return md_stats_fail("%s: is OUT-DB itself", in->path);
		for (size_t k = 0; k < i && !m->again; k++)
			if (m->inputs[k].dev == in->dev && m->inputs[k].ino == in->ino)
				return md_stats_fail("%s: is given twice", in->path);
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
		r = mp_store_merge(out, m->inputs[i].store, m->again, &m->inputs[i].stats, err);
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
		return md_stats_fail("%s; --again adds it once more", err.msg);
	return r ? md_stats_fail("%s", err.msg) : 0;
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
	char name[4200];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

/* Gives the result its name once it is complete. Never replaces a file. */
static int publish(const char *temporary, const char *path)
{
	char name[4200], *dir;
	int fd, r;

	snprintf(name, sizeof(name), "%s-wal", temporary);
	if (!access(name, F_OK))
		return md_stats_fail("%s: could not be completed", temporary);
	r = renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE);
	if (r && (errno == EINVAL || errno == ENOSYS)) {
		r = link(temporary, path);
		if (!r)
			unlink(temporary);
	}
	if (r)
		return md_stats_fail("%s: %s", path, strerror(errno));
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
	char temporary[4096];
	mode_t mask = umask(0);
	struct mp_err err;
	sigset_t before;
	int fd, r;

	umask(mask);
	if (mp_directory_check(m->out, &err))
		return md_stats_fail("%s", err.msg);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", m->out) >= (int)sizeof(temporary))
		return md_stats_fail("the path of the database is too long");
	md_interrupt_hold(&before);
	fd = mkstemp(temporary);
	if (fd >= 0)
		md_interrupt_unlinks(temporary);
	md_interrupt_release(&before);
	if (fd < 0)
		return md_stats_fail("%s: %s", m->out, strerror(errno));
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

static json_t *stats_json(const struct mp_merge_stats *stats)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "samples", (json_int_t)stats->nr_samples,
			 "transfers", (json_int_t)stats->nr_transfers, "ways",
			 (json_int_t)stats->nr_ways, "nr_modules", (json_int_t)stats->nr_modules,
			 "nr_sessions", (json_int_t)stats->nr_sessions);
}

static int report(const struct merge *m)
{
	json_t *root, *inputs;

	if (!m->stats->json) {
		for (size_t i = 0; i < m->nr; i++) {
			const struct mp_merge_stats *s = &m->inputs[i].stats;

			md_stats_put_text(m->inputs[i].path);
			printf(": %" PRIu64 " samples", s->nr_samples);
			if (s->nr_transfers)
				printf(" and %" PRIu64 " transfers", s->nr_transfers);
			if (s->nr_ways)
				printf(" and %" PRIu64 " ways of branches", s->nr_ways);
			printf(" of %zu modules in %zu sessions added\n", s->nr_modules,
			       s->nr_sessions);
		}
		return md_stats_finish(MP_EXIT_DONE);
	}
	root = md_stats_json_new("merge");
	inputs = json_array();
	for (size_t i = 0; i < m->nr; i++) {
		json_t *input = stats_json(&m->inputs[i].stats);

		json_object_set_new(input, "path", md_stats_json_string(m->inputs[i].path));
		json_array_append_new(inputs, input);
	}
	json_object_set_new(root, "output", md_stats_json_string(m->out));
	json_object_set_new(root, "inputs", inputs);
	return md_stats_json_print(root);
}

int md_stats_merge(struct md_stats *stats, int argc, char **argv)
{
	struct merge m = {.stats = stats};
	struct stat st;
	int r;

	md_stats_parse(&argp, argc, argv, &m);
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
