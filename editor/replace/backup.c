// SPDX-License-Identifier: Apache-2.0
/* backup - directories, locks, and the order of writes: bytes, record, directory. */
#include "editor/replace/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "editor/replace/backup_debug.h"
#include "libprof/elf/backup_dir.h"
#include "libprof/elf/elf.h"

/* -EPERM means a refusal here, so the system's EPERM is reported as EACCES. */
static int fail(const char *path, int code, struct mp_err *err)
{
	return mp_err_set(err, code == EPERM ? EACCES : code, "%s: %s", path, strerror(code));
}

/* ---- directories ---------------------------------------------------------------------------- */

/* Make a directory and sync its parent, even if a killed run made the directory already. */
static int make_directory(const char *path, mode_t mode)
{
	char *parent, *slash;
	int fd;

	if (mkdir(path, mode) && errno != EEXIST)
		return -errno;
	parent = strdup(path);
	if (!parent)
		return -ENOMEM;
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0';
	fd = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(parent);
	return 0;
}

static int make_parents(const char *path, struct mp_err *err)
{
	mode_t mode = geteuid() == 0 ? 0755 : 0700;
	char *copy = strdup(path);
	int rc = copy ? 0 : -ENOMEM;

	for (char *slash = copy; !rc && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		rc = make_directory(copy, mode);
		*slash = '/';
	}
	free(copy);
	return rc ? fail(path, -rc, err) : 0;
}

/* EINVAL: directories of this file system need no sync. */
static int sync_directory(int fd)
{
	return fsync(fd) && errno != EINVAL ? -1 : 0;
}

static bool others_may_write(const struct stat *st)
{
	return (st->st_mode & 022) || (st->st_uid != geteuid() && st->st_uid != 0);
}

/* Open a directory into which only we or root can have written. */
static int open_trusted(int at, const char *name, const char *path, int *out, struct mp_err *err)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return fail(path, errno, err);
	if (fstat(fd, &st))
		rc = fail(path, errno, err);
	else if (others_may_write(&st))
		rc = mp_err_set(err, EPERM,
				"%s: other users can write there and could choose the file that "
				"is restored",
				path);
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

int me_backup_open(struct me_backup *backup, const char *dir, bool make, struct mp_err *err)
{
	int rc = 0;

	*backup = (struct me_backup){.fd = -1};
	mp_err_set(err, ENOMEM, "out of memory");
	backup->path = dir ? strdup(dir) : mp_backup_default_dir(err);
	if (!backup->path)
		return -ENOENT;
	/* A trailing slash would hide the last part. */
	for (size_t n = strlen(backup->path); n > 1 && backup->path[n - 1] == '/';)
		backup->path[--n] = '\0';
	if (make && !dir)
		rc = make_parents(backup->path, err);
	if (!rc && make) {
		rc = make_directory(backup->path, 0700);
		rc = rc ? fail(backup->path, -rc, err) : 0;
	}
	if (!rc)
		rc = open_trusted(AT_FDCWD, backup->path, backup->path, &backup->fd, err);
	return rc == -ENOENT && !make ? 0 : rc;
}

void me_backup_close(struct me_backup *backup)
{
	if (backup->fd >= 0)
		close(backup->fd);
	free(backup->path);
	*backup = (struct me_backup){.fd = -1};
}

/* ---- one original's directory --------------------------------------------------------------- */

struct entry {
	char name[MP_BACKUP_FOLDER_MAX];
	char *path;
	int fd;
};

static void close_entry(struct entry *entry)
{
	if (entry->fd >= 0)
		close(entry->fd); /* this also releases the lock */
	free(entry->path);
}

static int open_entry(const struct me_backup *backup, const struct mp_id *id, bool make,
		      struct entry *out, struct mp_err *err)
{
	int rc;

	out->fd = -1;
	mp_backup_folder(id, out->name);
	if (asprintf(&out->path, "%s/%s", backup->path, out->name) < 0) {
		out->path = NULL;
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	if (make && mkdirat(backup->fd, out->name, 0700) && errno != EEXIST)
		return fail(out->path, errno, err);
	if (make && sync_directory(backup->fd))
		return fail(backup->path, errno, err);
	rc = open_trusted(backup->fd, out->name, out->path, &out->fd, err);
	/* Lock: records are read, changed and written back. */
	if (!rc && make && flock(out->fd, LOCK_EX))
		rc = fail(out->path, errno, err);
	return rc;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static int open_bytes(const struct entry *entry, const struct me_digest *digest, int *out)
{
	int fd = openat(entry->fd, digest->hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct me_digest now;
	struct stat st;
	int rc;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || others_may_write(&st))
		rc = -EBADMSG;
	else
		rc = me_digest_copy(fd, -1, &now, NULL);
	if (!rc && !me_digest_equal(&now, digest))
		rc = -EBADMSG;
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

static int changed(const char *path, struct mp_err *err)
{
	return mp_err_set(err, EBUSY, "%s: was changed while it was read; left as it is", path);
}

static int copy_bytes(const struct entry *entry, int from, const char *path,
		      const struct me_attributes *attributes, const struct me_digest *digest,
		      struct mp_err *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, attributes->mtime};
	struct me_digest copied;
	char temporary[48];
	int fd, rc;

	snprintf(temporary, sizeof(temporary), "%s.new", digest->hex);
	unlinkat(entry->fd, temporary, 0);
	/* Never executable: the original's mode may allow only a few users to run it. */
	fd = openat(entry->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0400);
	if (fd < 0)
		return fail(entry->path, errno, err);
	rc = me_digest_copy(from, fd, &copied, NULL);
	if (rc)
		rc = mp_err_set(err, -rc, "%s: cannot keep %s there: %s", entry->path, path,
				strerror(-rc));
	else if (!me_digest_equal(&copied, digest))
		rc = changed(path, err);
	else if (futimens(fd, times) || fsync(fd) ||
		 renameat(entry->fd, temporary, entry->fd, digest->hex))
		rc = fail(entry->path, errno, err);
	close(fd);
	if (rc)
		unlinkat(entry->fd, temporary, 0);
	return rc;
}

static int keep_bytes(const struct entry *entry, int from, const char *path,
		      const struct me_attributes *attributes, const struct me_digest *digest,
		      struct mp_err *err)
{
	struct me_digest now;
	int have, rc = open_bytes(entry, digest, &have);

	/* Replace damaged bytes: the good ones are at hand. */
	if (rc)
		return copy_bytes(entry, from, path, attributes, digest, err);
	close(have);
	rc = me_digest_copy(from, -1, &now, NULL);
	if (rc)
		return fail(path, -rc, err);
	return me_digest_equal(&now, digest) ? 0 : changed(path, err);
}

/* ---- put, find ------------------------------------------------------------------------------ */

static void record_name(const struct me_digest *digest, char *out, size_t size)
{
	snprintf(out, size, "%s.json", digest->hex);
}

static int prefix_error(int rc, const struct entry *entry, struct mp_err *err)
{
	struct mp_err inner = *err;

	return mp_err_set(err, rc == -EPERM ? EACCES : -rc, "%s/%.150s", entry->path, inner.msg);
}

static int save(const struct entry *entry, const char *name, const json_t *record,
		struct mp_err *err)
{
	int rc = me_record_save(entry->fd, name, record, err);

	if (rc)
		return prefix_error(rc, entry, err);
	return sync_directory(entry->fd) ? fail(entry->path, errno, err) : 0;
}

/* Under the lock of the original's directory: another run that makes the same file waits. */
static int put_debug(const struct me_backup_output *output,
		     const struct me_backup_debug_source *source, struct mp_err *err)
{
	return me_backup_debug_put(&output->debug, source->fd, source->like, err);
}

int me_backup_put(struct me_backup *backup, int fd, const char *path, const struct mp_id *id,
		  const struct me_digest *digest, const struct me_attributes *attributes,
		  const struct me_backup_output *output, const struct me_backup_debug_source *debug,
		  char **kept, struct mp_err *err)
{
	struct entry entry;
	json_t *record = NULL;
	struct stat st;
	char name[48];
	int rc = open_entry(backup, id, true, &entry, err);

	*kept = NULL;
	record_name(digest, name, sizeof(name));
	if (!rc)
		rc = keep_bytes(&entry, fd, path, attributes, digest, err);
	if (!rc && fstat(fd, &st))
		rc = fail(path, errno, err);
	if (!rc) {
		/* A damaged record is replaced, too; it can only be about this file. */
		if (me_record_load(entry.fd, name, &record, NULL) || !me_record_is_of(record, id)) {
			json_decref(record);
			record = me_record_new(id, digest, (uint64_t)st.st_size);
		}
		if (!record || me_record_put_place(record, path, attributes) ||
		    me_record_add_output(record, path, output, time(NULL)))
			rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	if (!rc)
		rc = save(&entry, name, record, err);
	if (!rc && output->debug.path)
		rc = put_debug(output, debug, err);
	if (!rc && asprintf(kept, "%s/%s", entry.path, digest->hex) < 0) {
		*kept = NULL;
		rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	json_decref(record);
	close_entry(&entry);
	return rc;
}

struct choice {
	json_t *record;
	struct me_digest digest;
	int score;
	bool tie;	   /* two originals fit equally well */
	bool any;	   /* there is a backup of an original with this id */
	struct mp_err why; /* why a record cannot be read */
};

static void consider(const struct entry *entry, const char *name, const struct mp_id *id,
		     const char *path, const struct me_backup_output *output, struct choice *best)
{
	struct me_digest digest;
	json_t *record;
	char want[48];
	int score;

	if (me_record_load(entry->fd, name, &record, &best->why))
		return;
	if (!me_record_digest(record, &digest)) {
		mp_err_set(&best->why, EBADMSG, "%s: damaged", name);
		goto out;
	}
	record_name(&digest, want, sizeof(want));
	if (strcmp(want, name) || !me_record_is_of(record, id))
		goto out;
	best->any = true;
	score = me_record_score(record, path, output);
	if (score && score == best->score)
		best->tie = true;
	if (score > best->score) {
		best->tie = false;
		json_decref(best->record);
		best->record = json_incref(record);
		best->digest = digest;
		best->score = score;
	}
out:
	json_decref(record);
}

static int consider_all(const struct entry *entry, const struct mp_id *id, const char *path,
			const struct me_backup_output *output, struct choice *best)
{
	int fd = openat(entry->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		int code = errno;

		if (fd >= 0)
			close(fd);
		return -code;
	}
	while ((d = readdir(dir))) {
		size_t len = strlen(d->d_name);

		if (len == 32 + 5 && !strcmp(d->d_name + 32, ".json"))
			consider(entry, d->d_name, id, path, output, best);
	}
	closedir(dir);
	return 0;
}

static int no_backup(const struct me_backup *backup, const struct mp_id *id, const char *path,
		     struct mp_err *err)
{
	char text[2 * MP_BUILD_ID_MAX + 1];

	mp_id_format_build_id(id, text);
	return mp_err_set(err, EPERM,
			  "%s: is an output of Morph, but there is no backup of its original "
			  "(build-id %s) in %s",
			  path, *text ? text : "none", backup->path);
}

static int explain(const struct me_backup *backup, const struct choice *best,
		   const struct mp_id *id, const char *path, struct mp_err *err)
{
	if (best->tie)
		return mp_err_set(err, EPERM,
				  "%s: two originals in %s fit: restore the right one by hand",
				  path, backup->path);
	if (best->why.msg[0])
		return mp_err_set(err, EPERM, "%s: its backup cannot be read: %.150s", path,
				  best->why.msg);
	if (best->any)
		return mp_err_set(err, EPERM,
				  "%s: an output of Morph, but no record in %s says that it "
				  "replaced an original",
				  path, backup->path);
	return no_backup(backup, id, path, err);
}

int me_backup_find(struct me_backup *backup, const struct mp_id *id, const char *path,
		   const struct me_backup_output *output, struct me_original *out,
		   struct mp_err *err)
{
	struct choice best = {0};
	struct entry entry;
	int rc;

	*out = (struct me_original){.fd = -1, .id = *id};
	if (backup->fd < 0)
		return no_backup(backup, id, path, err);
	rc = open_entry(backup, id, false, &entry, err);
	if (rc == -ENOENT)
		rc = no_backup(backup, id, path, err);
	if (!rc) {
		rc = consider_all(&entry, id, path, output, &best);
		rc = rc ? fail(entry.path, -rc, err) : 0;
	}
	if (!rc && (!best.record || best.tie))
		rc = explain(backup, &best, id, path, err);
	if (!rc && asprintf(&out->path, "%s/%s", entry.path, best.digest.hex) < 0) {
		out->path = NULL;
		rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	if (!rc) {
		out->digest = best.digest;
		rc = open_bytes(&entry, &best.digest, &out->fd);
		if (rc == -EBADMSG)
			rc = mp_err_set(err, EPERM, "%s: its backup %s is damaged", path,
					out->path);
		else if (rc == -ENOENT)
			rc = mp_err_set(err, EPERM, "%s: its backup %s is missing", path,
					out->path);
		else if (rc)
			rc = fail(out->path, -rc, err);
	}
	if (!rc && !me_record_mtime(best.record, path, &out->mtime))
		rc = mp_err_set(err, EPERM, "%s: the record of its backup %s is damaged", path,
				out->path);
	json_decref(best.record);
	close_entry(&entry);
	return rc;
}

int me_backup_add_output(struct me_backup *backup, const struct me_original *original,
			 const char *path, const struct me_backup_output *output,
			 const struct me_backup_debug_source *debug, struct mp_err *err)
{
	struct entry entry;
	json_t *record = NULL;
	char name[48];
	int rc = open_entry(backup, &original->id, true, &entry, err);

	record_name(&original->digest, name, sizeof(name));
	if (!rc) {
		rc = me_record_load(entry.fd, name, &record, err);
		rc = rc ? prefix_error(rc, &entry, err) : 0;
	}
	if (!rc && me_record_add_output(record, path, output, time(NULL)))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc)
		rc = save(&entry, name, record, err);
	if (!rc && output->debug.path)
		rc = put_debug(output, debug, err);
	json_decref(record);
	close_entry(&entry);
	return rc;
}

/* ---- debug files ---------------------------------------------------------------------------- */

/*
 * One output at two places shares one debug file. Is the output still at a place other
 * than @path?
 */
static bool is_needed(const json_t *record, const char *path, const char *debug)
{
	const char *output_id;
	char *other, text[2 * MP_BUILD_ID_MAX + 1];
	size_t at = 0;
	bool needed = false;

	while (!needed && me_record_next_user(record, path, debug, &at, &other, &output_id)) {
		struct mp_elf *elf;
		struct mp_err ignored;

		if (!mp_elf_open(other, MP_ELF_ID, &elf, &ignored)) {
			mp_id_format_build_id(&elf->id, text);
			needed = !strcmp(text, output_id);
			mp_elf_close(elf);
		}
		free(other);
	}
	return needed;
}

int me_backup_drop_debug(struct me_backup *backup, const struct mp_id *id,
			 const struct me_digest *digest, const char *path, const struct mp_id *keep,
			 struct mp_err *err)
{
	struct me_backup_debug debug;
	struct mp_err ignored;
	struct entry entry;
	json_t *record = NULL;
	char name[48];
	size_t at = 0;
	bool dropped = false;
	int rc = open_entry(backup, id, true, &entry, err);

	record_name(digest, name, sizeof(name));
	if (!rc) {
		rc = me_record_load(entry.fd, name, &record, err);
		rc = rc ? prefix_error(rc, &entry, err) : 0;
	}
	while (record && me_record_next_debug(record, path, keep, &at, &debug)) {
		int failed = 0;

		if (!is_needed(record, path, debug.path))
			failed = me_backup_debug_remove(&debug, err);
		if (!failed) {
			me_record_drop_debug(record, path, debug.path);
			dropped = true;
		}
		rc = rc ? rc : failed;
		free(debug.path);
	}
	/* A record may name files that are gone: that does no harm. */
	if (dropped)
		save(&entry, name, record, &ignored);
	json_decref(record);
	close_entry(&entry);
	return rc;
}

void me_original_fini(struct me_original *original)
{
	if (original->fd >= 0)
		close(original->fd);
	free(original->path);
	*original = (struct me_original){.fd = -1};
}
