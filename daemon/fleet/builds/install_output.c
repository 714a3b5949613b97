// SPDX-License-Identifier: Apache-2.0
/* install_output - see install_output.h. */
#include "daemon/fleet/builds/install_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/child.h"

/* Large programs take half a minute; a plan may be made to take longer. */
#define LIMIT_S 3600
/* Exit status of morph-optimize: refused as unsafe. */
#define REFUSED	  4
#define NAME_ROOM (PATH_MAX + 16)

static int fetch(PGconn *conn, const struct md_wanted *w, const char *plan, struct mp_err *err)
{
	int fd, r;

	unlink(plan);
	fd = open(plan, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", plan, strerror(errno));
	r = md_wanted_fetch(conn, w, fd, err);
	if (close(fd) && !r)
		r = mp_err_set(err, errno, "%s: %s", plan, strerror(errno));
	return r;
}

static int emit(const char *original, const char *plan, const char *path, struct mp_err *err)
{
	char program[PATH_MAX], messages[NAME_ROOM], plan_option[NAME_ROOM + 16];
	char *argv[] = {program,      (char *)"--report=none", plan_option, (char *)"-o",
			(char *)path, (char *)original,	       NULL};
	struct md_child child = {.argv = argv, .messages = messages, .limit_s = LIMIT_S};
	struct md_child_result result;
	int r = md_child_find("morph-optimize", program, err);

	if (r)
		return r;
	snprintf(messages, sizeof(messages), "%s.messages", path);
	snprintf(plan_option, sizeof(plan_option), "--plan=%s", plan);
	unlink(messages);
	unlink(path);
	r = md_child_run(&child, &result, err);
	unlink(messages);
	if (r)
		return r;
	if (result.end == MD_CHILD_STOPPED)
		return mp_err_set(err, EINTR, "the work was stopped");
	if (result.end == MD_CHILD_EXITED && !result.status)
		return 0;
	return mp_err_set(
		err, result.end == MD_CHILD_EXITED && result.status == REFUSED ? EPERM : ENOEXEC,
		"%s", result.reason[0] ? result.reason : "morph-optimize ended without a message");
}

int md_install_make(PGconn *conn, const struct md_wanted *w, const char *original, const char *path,
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
