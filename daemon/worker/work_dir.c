// SPDX-License-Identifier: Apache-2.0
/* work_dir - directories of jobs, and the evidence of audits; see work_dir.h. */
#include "daemon/worker/work_dir.h"
#include "libprof/cli/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "libprof/base/remove_tree.h"

#define DEPTH	   16  /* of directories that a training leaves */
#define LOCK_TRIES 100 /* of a tenth of a second */

int md_state_default_dir(char *buf, size_t size, struct mp_err *err)
{
	const char *service = getenv("STATE_DIRECTORY"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (service && service[0] == '/')
		n = snprintf(buf, size, "%s", service);
	else if (!geteuid())
		n = snprintf(buf, size, "/var/lib/morph-worker");
	else if (state && state[0] == '/')
		n = snprintf(buf, size, "%s/morph-worker", state);
	else if (home && home[0] == '/')
		n = snprintf(buf, size, "%s/.local/state/morph-worker", home);
	else
		return mp_err_set(err, ENOENT, "HOME is not set: give --state-dir");
	if (n < 0 || (size_t)n >= size)
		return mp_err_set(err, ENAMETOOLONG, "the path of the state is too long");
	return 0;
}

/* A child of a worker that was killed may still be ending. Return: 0, an errno. */
static int wait_for_lock(int lock)
{
	const struct timespec pause = {.tv_nsec = 100000000};

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(lock, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return errno;
		nanosleep(&pause, NULL);
	}
	return EWOULDBLOCK;
}

int md_state_lock(const char *dir, struct mp_err *err)
{
	struct stat st;
	int fd, lock, code;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return mp_err_set(err, errno, "%s: cannot make the directory: %s", dir,
				  strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		code = errno;
		if (fd >= 0)
			close(fd);
		return mp_err_set(err, code, "%s: %s", dir, strerror(code));
	}
	if (st.st_uid != geteuid() || (st.st_mode & 022)) {
		close(fd);
		return mp_err_set(err, EPERM, "%s: other users can write there: not used", dir);
	}
	lock = openat(fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	code = lock < 0 ? errno : wait_for_lock(lock);
	close(fd);
	if (!code)
		return lock;
	if (lock >= 0)
		close(lock);
	return code == EWOULDBLOCK
		       ? mp_err_set(err, EBUSY, "%s: another morph-worker is at work", dir)
		       : mp_err_set(err, code, "%s/lock: %s", dir, strerror(code));
}

/* ---- directories --------------------------------------------------------------------------- */

static void name_dir(const char *state_dir, const char *path, struct md_work_dir *out)
{
	snprintf(out->path, sizeof(out->path), "%s/%016" PRIx64, state_dir,
		 XXH3_64bits(path, strlen(path)));
}

int md_work_dir_find(const char *state_dir, const char *path, struct md_work_dir *out,
		     struct mp_err *err)
{
	struct stat st;

	name_dir(state_dir, path, out);
	if (stat(state_dir, &st))
		return mp_err_set(err, errno, "%s: %s", state_dir, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return mp_err_set(err, EPERM, "%s: other users can write there: not used",
				  state_dir);
	return 0;
}

int md_work_dir_open(const char *state_dir, const char *path, struct md_work_dir *out,
		     struct mp_err *err)
{
	name_dir(state_dir, path, out);
	if (mkdir(out->path, 0755) && errno != EEXIST)
		return mp_err_set(err, errno, "%s: %s", out->path, strerror(errno));
	return 0;
}

struct md_work_path md_work_path(const struct md_work_dir *dir, const char *name)
{
	struct md_work_path path;

	snprintf(path.text, sizeof(path.text), "%s/%s", dir->path, name);
	return path;
}

static void flush_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

void md_work_dir_flush(const struct md_work_dir *dir)
{
	flush_directory(dir->path);
	flush_directory(md_work_path(dir, "..").text);
}

void md_work_dir_remove(const struct md_work_dir *dir)
{
	mp_remove_tree(dir->path, DEPTH);
}

/* Its user may still be at work in it: another name frees this one at once, whatever can be removed. */
static void remove_train(const struct md_work_dir *dir, const char *path)
{
	struct md_work_path old = md_work_path(dir, "old.XXXXXX");

	unlink(path);
	if (!mkdtemp(old.text))
		return;
	(void)!rename(path, old.text);
	mp_remove_tree(old.text, DEPTH);
}

int md_work_dir_train(const struct md_work_dir *dir, const char *user, struct mp_err *err)
{
	struct md_work_path train = md_work_path(dir, "train");
	const struct passwd *pw = user ? getpwnam(user) : NULL;

	if (user && !pw)
		return mp_err_set(err, ENOENT, "%s: there is no such user", user);
	remove_train(dir, train.text);
	/* -EEXIST means something else to md_round_step(): a step that the history has already. */
	if (mkdir(train.text, 0755) || (pw && lchown(train.text, pw->pw_uid, pw->pw_gid)))
		return mp_err_set(err, errno == EEXIST ? ENOTEMPTY : errno, "%s: %s", train.text,
				  strerror(errno));
	return 0;
}

/* ---- evidence ------------------------------------------------------------------------------ */

static bool sound(const struct md_evidence *e)
{
	return isfinite(e->gain.ratio) && isfinite(e->gain.lowest) && isfinite(e->gain.highest) &&
	       isfinite(e->log_faster) && isfinite(e->log_slower) && e->gain.ratio >= 0 &&
	       e->gain.lowest >= 0 && e->gain.highest >= 0;
}

static bool copy(char *to, size_t size, json_t *root, const char *name)
{
	const char *text = json_string_value(json_object_get(root, name));

	return text && snprintf(to, size, "%s", text) < (int)size;
}

int md_evidence_save(const struct md_work_dir *dir, const struct md_evidence *e, struct mp_err *err)
{
	json_t *root = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:I, s:f, s:f}", "original",
				 e->original, "output", e->output, "verdict", e->verdict, "ratio",
				 e->gain.ratio, "lowest", e->gain.lowest, "highest",
				 e->gain.highest, "pairs", (json_int_t)e->pairs, "log_faster",
				 e->log_faster, "log_slower", e->log_slower);

	return mp_json_save(root, md_work_path(dir, "evidence").text, err);
}

bool md_evidence_load(const struct md_work_dir *dir, struct md_evidence *out)
{
	struct md_work_path path = md_work_path(dir, "evidence");
	json_t *root = json_load_file(path.text, 0, NULL);
	bool fine;

	*out = (struct md_evidence){0};
	fine = copy(out->original, sizeof(out->original), root, "original") &&
	       copy(out->output, sizeof(out->output), root, "output") &&
	       copy(out->verdict, sizeof(out->verdict), root, "verdict");
	out->gain.ratio = json_number_value(json_object_get(root, "ratio"));
	out->gain.lowest = json_number_value(json_object_get(root, "lowest"));
	out->gain.highest = json_number_value(json_object_get(root, "highest"));
	out->pairs = (unsigned long)json_integer_value(json_object_get(root, "pairs"));
	out->log_faster = json_number_value(json_object_get(root, "log_faster"));
	out->log_slower = json_number_value(json_object_get(root, "log_slower"));
	json_decref(root);
	return fine && sound(out);
}

bool md_evidence_read_failure(const char *path, char *reason, size_t size)
{
	json_t *root = json_load_file(path, 0, NULL);
	const char *error = json_string_value(json_object_get(root, "error"));

	if (error)
		snprintf(reason, size, "%s", error);
	json_decref(root);
	return error;
}

bool md_evidence_read_audit(const char *path, struct md_evidence *out)
{
	json_t *root = json_load_file(path, 0, NULL);
	json_t *interval = json_object_get(root, "interval");
	bool fine = copy(out->verdict, sizeof(out->verdict), root, "verdict");

	out->gain.ratio = json_number_value(json_object_get(root, "speedup"));
	out->gain.lowest = json_number_value(json_array_get(interval, 0));
	out->gain.highest = json_number_value(json_array_get(interval, 1));
	out->pairs = (unsigned long)json_integer_value(json_object_get(root, "pairs"));
	out->log_faster = json_number_value(json_object_get(root, "log_evidence_faster"));
	out->log_slower = json_number_value(json_object_get(root, "log_evidence_slower"));
	json_decref(root);
	return fine && sound(out);
}
