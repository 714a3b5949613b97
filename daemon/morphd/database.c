// SPDX-License-Identifier: Apache-2.0
/* database - opens and locks morphd's database; see database.h. */
#include "daemon/morphd/database.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/record/recfile.h"
#include "libprof/base/outfile.h"

/* The service has the default database open, so root's commands use another one. */
static int open_other_database(struct md_database *db, struct mp_err *err)
{
	char service[sizeof(db->path)];
	int ret;

	memcpy(service, db->path, sizeof(service));
	ret = mp_store_own_path(db->path, sizeof(db->path), true, err);
	/* Ordinary users have their own default database. */
	if (!ret && !strcmp(db->path, service))
		return md_lock_take(db->path, true, &db->lock, err);
	if (!ret)
		ret = md_lock_take(db->path, true, &db->lock, err);
	if (!ret)
		fprintf(stderr,
			"morphd: the running service uses %s: the samples go to another "
			"database; see them with: morph-stats query --db=%s\n",
			service, db->path);
	return ret;
}

/* Before a lock file or a database is made: can the files of the command line be used? */
static int check_files(const struct md_options *o, const char *db, struct mp_err *err)
{
	const char *inputs[] = {o->input ? o->input : db, db, NULL};
	struct md_recreader *reader;
	int ret = *db ? mp_store_check_place(db, err) : 0;

	if (!ret && o->input) {
		ret = md_recreader_open(o->input, &reader, err);
		if (!ret)
			md_recreader_close(reader);
	}
	return ret ? ret : mp_outfile_check(o->record, inputs, err);
}

int md_database_open(const struct md_options *o, const struct md_config *config,
		     struct md_database *db, struct mp_err *err)
{
	int ret = 0;

	*db = (struct md_database){.lock.fd = -1};
	if (!config->database[0] && o->record)
		return check_files(o, "", err);
	if (config->database[0])
		memcpy(db->path, config->database, sizeof(db->path));
	else
		ret = mp_store_default_path(db->path, sizeof(db->path), true, err);
	if (!ret)
		ret = check_files(o, db->path, err);
	if (!ret)
		ret = md_lock_take(db->path, o->is_run, &db->lock, err);
	if (ret == -EBUSY && o->is_run && !config->database[0] && !getenv("MORPH_DB"))
		ret = open_other_database(db, err);
	if (!ret)
		ret = mp_store_open(db->path, MP_STORE_WRITE, &db->store, err);
	return ret;
}

void md_database_close(struct md_database *db)
{
	mp_store_close(db->store);
	md_lock_release(&db->lock);
}

static void format_time(int64_t when_s, char *text, size_t size)
{
	time_t when = when_s;
	struct tm tm;

	if (!gmtime_r(&when, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, size, "%" PRId64, when_s);
}

int md_database_log_state(const struct md_database *db, struct mp_err *err)
{
	struct mp_session *sessions;
	char first[32], last[32];
	size_t nr;
	int ret;

	if (!db->store)
		return 0;
	ret = mp_store_list_sessions(db->store, &sessions, &nr, err);
	if (ret)
		return ret;
	if (!nr) {
		fprintf(stderr, "morphd: %s: the database is empty\n", db->path);
	} else {
		format_time(sessions[0].start_s, first, sizeof(first));
		format_time(sessions[0].last_s, last, sizeof(last));
		fprintf(stderr,
			"morphd: %s: session %zu begins; the last one, by %s, from %s to %s UTC, "
			"has %" PRIu64 " samples\n",
			db->path, nr + 1, sessions[0].collector, first, last,
			sessions[0].ledger.emitted);
		if (db->lock.unclean_pid)
			fprintf(stderr,
				"morphd: the last morphd (process %d) did not shut down "
				"properly: its samples after %s UTC are lost\n",
				(int)db->lock.unclean_pid, last);
	}
	free(sessions);
	return 0;
}
