// SPDX-License-Identifier: Apache-2.0
/* pull_target - see pull_target.h. */
#include "daemon/fleet/pull/pull_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/newfile.h"

/* A database with counts of this machine must not be lost to a wrong --output. */
static int check_old(const char *path, struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	struct mp_store *store;
	struct stat st;
	size_t nr = 0;
	bool pulled = true;

	if (lstat(path, &st))
		return errno == ENOENT ? 0
				       : mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || mp_store_open(path, MP_STORE_READ, &store, NULL))
		return mp_err_set(err, EEXIST, "%s: exists, and no pull wrote it", path);
	if (mp_store_list_sessions(store, &sessions, &nr, NULL))
		pulled = false;
	for (size_t i = 0; i < nr; i++)
		pulled &= !strcmp(sessions[i].collector, "fleet");
	free(sessions);
	mp_store_close(store);
	if (!pulled)
		return mp_err_set(err, EEXIST, "%s: exists, and no pull wrote it", path);
	return 0;
}

static void remove_temporary(const struct md_pull_target *target)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char name[4200];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s%s", target->temporary, suffixes[i]);
		unlink(name);
	}
}

static int make_temporary(struct md_pull_target *target, struct mp_err *err)
{
	mode_t mask = umask(0);
	int fd, r = mp_directory_check(target->path, err);

	umask(mask);
	if (r)
		return r;
	if (snprintf(target->temporary, sizeof(target->temporary), "%s.XXXXXX", target->path) >=
	    (int)sizeof(target->temporary))
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", target->path);
	fd = mkstemp(target->temporary);
	if (fd < 0) {
		target->temporary[0] = '\0';
		return mp_err_set(err, errno, "%s: %s", target->path, strerror(errno));
	}
	fchmod(fd, 0644 & ~mask);
	close(fd);
	return 0;
}

int md_pull_target_open(struct md_pull_target *target, const char *db, const char *output,
			struct mp_err *err)
{
	const char *path = output ? output : db;
	int r = 0;

	memset(target, 0, sizeof(*target));
	if (path &&
	    snprintf(target->path, sizeof(target->path), "%s", path) >= (int)sizeof(target->path))
		return mp_err_set(err, ENAMETOOLONG, "the path of the database is too long");
	if (!path)
		r = mp_store_default_path(target->path, sizeof(target->path), true, err);
	if (!r && output)
		r = check_old(target->path, err);
	if (!r && output)
		r = make_temporary(target, err);
	if (!r)
		r = mp_store_open(output ? target->temporary : target->path, MP_STORE_WRITE,
				  &target->store, err);
	if (r && target->temporary[0])
		remove_temporary(target);
	return r;
}

int md_pull_target_close(struct md_pull_target *target, bool keep, struct mp_err *err)
{
	char name[4200];
	int r = 0;

	mp_store_close(target->store);
	target->store = NULL;
	if (!target->temporary[0])
		return 0;
	snprintf(name, sizeof(name), "%s-wal", target->temporary);
	if (keep && !access(name, F_OK))
		r = mp_err_set(err, EIO, "%s: could not be completed", target->path);
	else if (keep && rename(target->temporary, target->path))
		r = mp_err_set(err, errno, "%s: %s", target->path, strerror(errno));
	if (r || !keep)
		remove_temporary(target);
	return r;
}
