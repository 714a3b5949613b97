// SPDX-License-Identifier: Apache-2.0
/* old_backups - looks at DIR/BUILD-ID/XXH3.json; see old_backups.h. */
#include "daemon/worker/old_backups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/worker/file_state.h"
#include "libprof/base/defaults.h"
#include "libprof/cli/json.h"
#include "libprof/elf/backup_dir.h"

#define RECORD_MAX (4 << 20)
/* A look reads the files at all places. */
#define LOOK_AGAIN_S 3600
/* A file system that is not mounted comes back sooner than this, in keep_s; a directory that went with its package never. */
#define HIDDEN_KEEPS 4
#define LOOKED	     "looked_s" /* in the notes: time of the last look; no folder has this name */

struct look {
	double keep_s;
	int64_t now_s;
	json_t *before, *now; /* FOLDER/XXH3: first seen as not needed */
	void (*say)(const char *path, const char *text);
};

/* Is there a directory where this file would be? Else its file system may not be mounted now. */
static bool has_parent(const char *path)
{
	char dir[PATH_MAX];
	struct stat st;

	return snprintf(dir, sizeof(dir), "%.*s/", (int)(strrchr(path, '/') - path), path) <
		       (int)sizeof(dir) &&
	       !stat(dir, &st);
}

/*
 * An original may be wanted back as long as an output lies at one of its places, or may lie there. @hidden: there is no such
 * directory.
 */
static bool holds_output(const char *path, bool *hidden)
{
	struct md_file_state file;
	struct mp_err why;
	int ret = md_file_look(path, &file, &why);

	if (ret == -ENOENT || ret == -ENOTDIR) {
		*hidden |= !has_parent(path);
		return false;
	}
	return ret || file.is_output;
}

/* Is one of the places in use? A record that cannot be understood keeps its original. */
static bool is_needed(const json_t *record, bool *hidden)
{
	json_t *places = json_object_get(record, "places"), *place, *output;
	size_t i;

	if (!json_array_size(places))
		return true;
	json_array_foreach(places, i, place)
	{
		const char *path = json_string_value(json_object_get(place, "path"));

		if (!path || path[0] != '/' || holds_output(path, hidden))
			return true;
	}
	json_array_foreach(json_object_get(record, "outputs"), i, output)
	{
		if (json_object_get(output, "debug"))
			return true;
	}
	return false;
}

static json_t *load(int folder, const char *name, struct stat *st)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	json_t *record = NULL;

	if (fd >= 0 && !fstat(fd, st) && S_ISREG(st->st_mode) && st->st_size <= RECORD_MAX)
		record = json_loadfd(fd, 0, NULL);
	if (fd >= 0)
		close(fd);
	return record;
}

static void say_removed(const struct look *look, const json_t *record)
{
	json_t *place = json_array_get(json_object_get(record, "places"), 0);

	look->say(json_string_value(json_object_get(place, "path")),
		  "no version of Morph is in its place any more: the backup was removed");
}

/* @key: FOLDER/XXH3. The folder is locked, so nobody adds an output meanwhile. */
static int look_at(struct look *look, int folder, const char *name, const char *key,
		   struct mp_err *err)
{
	struct stat st;
	json_t *record = load(folder, name, &st);
	json_int_t since_s = json_integer_value(json_object_get(look->before, key));
	char bytes[MP_BACKUP_DIGEST_LEN + 1];
	bool hidden = false;
	int ret = 0;

	if (!record || is_needed(record, &hidden)) {
		json_decref(record);
		return 0;
	}
	if (since_s <= 0 || since_s > look->now_s || st.st_mtim.tv_sec > since_s)
		since_s = look->now_s;
	if ((double)(look->now_s - since_s) < look->keep_s * (hidden ? HIDDEN_KEEPS : 1)) {
		json_object_set_new(look->now, key, json_integer(since_s));
	} else {
		/* The bytes first: without its record nobody would find them again. */
		snprintf(bytes, sizeof(bytes), "%.*s", MP_BACKUP_DIGEST_LEN, name);
		if ((unlinkat(folder, bytes, 0) && errno != ENOENT) || unlinkat(folder, name, 0))
			ret = mp_err_set(err, errno, "%s: cannot be removed: %s", key,
					 strerror(errno));
		else
			say_removed(look, record);
	}
	json_decref(record);
	return ret;
}

static bool is_record(const char *name)
{
	return strspn(name, "0123456789abcdef") == MP_BACKUP_DIGEST_LEN &&
	       !strcmp(name + MP_BACKUP_DIGEST_LEN, ".json");
}

/*
 * The folder itself stays: another process may be about to write into it. It is empty then, and is used
 * again if the same build comes back.
 */
static int look_into(struct look *look, int dir, const char *name, struct mp_err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), ret = 0;
	char key[600];
	struct dirent *entry;
	DIR *folder;

	/* Another process works there: the next start looks again. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return mp_err_set(err, errno, "%s: %s", name, strerror(errno));
	}
	while (!ret && (entry = readdir(folder)))
		if (is_record(entry->d_name) &&
		    snprintf(key, sizeof(key), "%s/%.*s", name, MP_BACKUP_DIGEST_LEN,
			     entry->d_name) < (int)sizeof(key))
			ret = look_at(look, dirfd(folder), entry->d_name, key, err);
	closedir(folder);
	return ret;
}

static int save_notes(const char *notes, const json_t *now, struct mp_err *err)
{
	char new[MP_PATH_ROOM];
	int fd, ret = 0;

	snprintf(new, sizeof(new), "%s.new", notes);
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (!mp_json_is_whole(now))
		ret = mp_err_code(err, ENOMEM);
	else if (fd < 0 || json_dumpfd(now, fd, 0) || rename(new, notes))
		ret = mp_err_set(err, errno, "%s: cannot be written: %s", notes, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

int md_old_backups_drop(const char *dir, const char *notes, double keep_s, int64_t now_s,
			void (*say)(const char *path, const char *text), struct mp_err *err)
{
	struct look look = {.keep_s = keep_s, .now_s = now_s, .say = say};
	char *own = dir ? strdup(dir) : mp_backup_default_dir(err);
	DIR *all = own ? opendir(own) : NULL;
	struct dirent *entry;
	int64_t looked_s;
	int ret = 0;

	if (!all) {
		ret = own && errno != ENOENT
			      ? mp_err_set(err, errno, "%s: %s", own, strerror(errno))
			      : 0;
		free(own);
		return ret;
	}
	free(own);
	look.before = json_load_file(notes, 0, NULL);
	looked_s = json_integer_value(json_object_get(look.before, LOOKED));
	if (looked_s <= now_s && now_s - looked_s < LOOK_AGAIN_S) {
		json_decref(look.before);
		closedir(all);
		return 0;
	}
	look.now = json_pack("{s:I}", LOOKED, (json_int_t)now_s);
	while (!ret && (entry = readdir(all)))
		if (entry->d_name[0] != '.')
			ret = look_into(&look, dirfd(all), entry->d_name, err);
	closedir(all);
	if (!ret)
		ret = save_notes(notes, look.now, err);
	json_decref(look.before);
	json_decref(look.now);
	return ret;
}
