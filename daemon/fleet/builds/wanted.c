// SPDX-License-Identifier: Apache-2.0
/* wanted - see wanted.h. */
#include "daemon/fleet/builds/wanted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/child.h"
#include "libprof/base/child.h"
#include "libprof/base/text.h"
#include "libprof/base/varint.h"
#include "libprof/cli/exit_status.h"

/* Large programs take half a minute; a plan may be made to take longer. */
#define LIMIT_S	   3600
#define NAME_ROOM  (PATH_MAX + 16)
#define SLICE	   (UINT64_C(512) << 10)
#define DETAIL_MAX 1000

/* ---- ask ----------------------------------------------------------------------------------- */

static bool take_text(const json_t *row, const char *column, char *out, size_t room)
{
	return json_is_string(json_object_get(row, column)) &&
	       snprintf(out, room, "%s", md_row_text(row, column)) < (int)room;
}

/* A build that is to be undone may have no plan any more. */
static bool take_row(const json_t *row, struct md_wanted *w)
{
	const char *action = md_row_text(row, "action");
	double plan_size = md_row_number(row, "plan_size"), release = md_row_number(row, "release");

	*w = (struct md_wanted){.undo = !strcmp(action, "undo")};
	if ((!w->undo && strcmp(action, "install") != 0) ||
	    md_module_of_text(md_row_text(row, "module"), &w->id) ||
	    !take_text(row, "options", w->options, sizeof(w->options)) ||
	    !take_text(row, "version", w->version, sizeof(w->version)) || release < 0 ||
	    release > INT32_MAX || plan_size < 0 || plan_size > (double)MD_PLAN_SIZE_MAX)
		return false;
	w->release = (int32_t)release;
	w->plan_size = (uint64_t)plan_size;
	return w->undo ||
	       (w->plan_size && md_hex_read(md_row_text(row, "output_hash"), w->output_hash,
					    MD_SHA256_SIZE) == MD_SHA256_SIZE);
}

/* The server may say what it likes, but not more than was asked for. */
static int take_rows(const json_t *rows, size_t nr, struct md_wanted **out, size_t *nr_out,
		     struct mp_err *err)
{
	*nr_out = json_array_size(rows);
	if (*nr_out > nr)
		return mp_err_set(err, EPROTO, "the server gives a damaged list of builds");
	*out = calloc(*nr_out + 1, sizeof(**out));
	if (!*out)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < *nr_out; i++) {
		if (take_row(json_array_get(rows, i), &(*out)[i]))
			continue;
		free(*out);
		return mp_err_set(err, EPROTO, "the server gives a damaged build");
	}
	return 0;
}

/* The modules, as PostgreSQL writes a list of bytes. */
static char *list_of(const struct mp_id *modules, size_t nr)
{
	struct mp_varint_writer list = {0};

	for (size_t i = 0; i < nr; i++) {
		char hex[2 * MD_MODULE_KEY_MAX + 1];
		uint8_t key[MD_MODULE_KEY_MAX];

		md_hex_write(key, md_module_key(&modules[i], key), hex);
		mp_varint_put_bytes(&list, i ? ",\\\\x" : "{\\\\x", 4);
		mp_varint_put_bytes(&list, hex, strlen(hex));
	}
	mp_varint_put_bytes(&list, "}", 2);
	if (!list.failed)
		return (char *)list.bytes;
	free(list.bytes);
	return NULL;
}

int md_wanted_ask(PGconn *conn, const struct mp_id *modules, size_t nr, struct md_wanted **out,
		  size_t *nr_out, struct mp_err *err)
{
	char *list = list_of(modules, nr);
	json_t *rows;
	int r;

	if (!list)
		return mp_err_set(err, ENOMEM, "out of memory");
	r = md_pg_rows(conn, "ask for builds", &rows, err,
		       "SELECT module, action, options, version, release, output_hash, plan_size"
		       " FROM fleet.wanted_builds($1)",
		       "t", list);
	free(list);
	if (r)
		return r;
	r = take_rows(rows, nr, out, nr_out, err);
	json_decref(rows);
	return r;
}

/* ---- fetch --------------------------------------------------------------------------------- */

/* Appends the bytes that @hex is to the plan. */
static int write_slice(const char *hex, uint64_t want, int fd, struct mp_err *err)
{
	uint8_t *bytes = malloc(want);
	int r = 0;

	if (!bytes)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (md_hex_read(hex, bytes, want) != want)
		r = mp_err_set(err, EPROTO, "the build's plan has another size");
	for (uint64_t done = 0; done < want && !r;) {
		ssize_t n = write(fd, bytes + done, want - done);

		if (n >= 0)
			done += (uint64_t)n;
		else if (errno != EINTR)
			r = mp_err_set(err, errno, "the plan cannot be written: %s",
				       strerror(errno));
	}
	free(bytes);
	return r;
}

static int fetch_plan(PGconn *conn, const struct md_wanted *w, int fd, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	int r = 0;

	for (uint64_t done = 0; done < w->plan_size && !r; done += SLICE) {
		uint64_t want = w->plan_size - done < SLICE ? w->plan_size - done : SLICE;
		PGresult *result;

		r = md_pg_run(conn, "read the build", &result, err,
			      "SELECT fleet.read_plan($1, $2, $3, $4, $5, $6)", "bttiii", key,
			      md_module_key(&w->id, key), w->options, w->version,
			      (int64_t)w->release, (int64_t)done, (int64_t)want);
		if (!r && (PQntuples(result) != 1 || PQgetisnull(result, 0, 0)))
			r = mp_err_set(err, ESTALE, "the build was withdrawn, or made anew");
		else if (!r)
			r = write_slice(PQgetvalue(result, 0, 0), want, fd, err);
		PQclear(result);
	}
	return r;
}

static int fetch(PGconn *conn, const struct md_wanted *w, const char *plan, struct mp_err *err)
{
	int fd, r;

	unlink(plan);
	fd = open(plan, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", plan, strerror(errno));
	r = fetch_plan(conn, w, fd, err);
	if (close(fd) && !r)
		r = mp_err_set(err, errno, "%s: %s", plan, strerror(errno));
	return r;
}

static int emit(const char *original, const char *plan, const char *path, struct mp_err *err)
{
	char program[PATH_MAX], plan_option[NAME_ROOM + 16];
	char *argv[] = {program,      (char *)"--report=none", plan_option, (char *)"-o",
			(char *)path, (char *)original,	       NULL};
	struct md_child child = {.argv = argv, .limit_s = LIMIT_S};
	struct md_child_result result;
	int r = mp_child_find("morph-optimize", program, err);

	if (r)
		return r;
	snprintf(plan_option, sizeof(plan_option), "--plan=%s", plan);
	unlink(path);
	r = md_child_run(&child, &result, err);
	if (r)
		return r;
	if (result.end == MD_CHILD_STOPPED)
		return mp_err_set(err, EINTR, "the work was stopped");
	if (result.end == MD_CHILD_EXITED && !result.status)
		return 0;
	return mp_err_set(
		err,
		result.end == MD_CHILD_EXITED && result.status == MP_EXIT_REFUSED ? EPERM : ENOEXEC,
		"%s", result.reason[0] ? result.reason : "morph-optimize ended without a message");
}

int md_wanted_make(PGconn *conn, const struct md_wanted *w, const char *original, const char *path,
		   uint8_t hash[MD_SHA256_SIZE], struct mp_err *err)
{
	struct md_whole_file made;
	char plan[NAME_ROOM];
	int r;

	snprintf(plan, sizeof(plan), "%s.plan", path);
	r = fetch(conn, w, plan, err);
	if (!r)
		r = emit(original, plan, path, err);
	unlink(plan);
	if (r)
		return r;
	r = md_whole_file_open(path, &made, err);
	memcpy(hash, made.hash, MD_SHA256_SIZE);
	md_whole_file_close(&made);
	return r;
}

/* ---- report -------------------------------------------------------------------------------- */

int md_wanted_report(PGconn *conn, const struct md_wanted *w, const char *state, const char *detail,
		     const uint8_t *hash, struct mp_err *err)
{
	uint8_t key[MD_MODULE_KEY_MAX];
	char clean[DETAIL_MAX + 1];

	return md_pg_run(conn, "report the build", NULL, err,
			 "SELECT fleet.report_build($1, $2, $3, $4, $5, $6, $7)", "bttittb", key,
			 md_module_key(&w->id, key), w->options, w->version, (int64_t)w->release,
			 state, mp_text_escape(detail, clean, sizeof(clean)), hash,
			 (size_t)MD_SHA256_SIZE);
}
