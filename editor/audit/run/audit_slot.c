// SPDX-License-Identifier: Apache-2.0
/* audit_slot - copies a program into the slot, and mounts the copy elsewhere for --at. */
#include "editor/audit/run/audit_slot.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include <xxhash.h>

#include "editor/base/scratch.h"

/* The slot gets a copy, which may not fill the disk. morph-optimize takes no larger file either. */
#define PROGRAM_MAX (2ll << 30)

int me_program_open(struct me_program *program, const char *path, struct mp_err *err)
{
	int ret;

	program->path = path;
	/* A FIFO has its message below, and nobody waits for its writer. */
	program->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (program->fd < 0)
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (fstat(program->fd, &program->st))
		ret = mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(program->st.st_mode))
		ret = mp_err_set(err, EINVAL, "%s: not a regular file", path);
	else if (program->st.st_size > PROGRAM_MAX)
		ret = mp_err_set(err, EFBIG, "%s: over 2 GiB", path);
	else
		return 0;
	me_program_close(program);
	return ret;
}

void me_program_close(struct me_program *program)
{
	if (program->fd >= 0)
		close(program->fd);
	program->fd = -1;
}

int me_program_hash(const struct me_program *program, uint64_t *hash, struct mp_err *err)
{
	XXH3_state_t *state = XXH3_createState();
	static char buf[1 << 16];
	off_t off = 0;
	ssize_t got;

	if (!state)
		return mp_err_set(err, ENOMEM, "out of memory");
	XXH3_64bits_reset(state);
	while ((got = pread(program->fd, buf, sizeof(buf), off)) > 0) {
		XXH3_64bits_update(state, buf, (size_t)got);
		off += got;
	}
	*hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	if (got < 0)
		return mp_err_set(err, errno, "%s: %s", program->path, strerror(errno));
	return 0;
}

static int slot_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t put;

	if (fd < 0)
		return -errno;
	put = write(fd, text, strlen(text));
	close(fd);
	return put < 0 ? -EIO : 0;
}

/* A program that runs by a path of its own needs no mounts. */
#define NO_RIGHT " (in a chroot or a container, work outside of it, or run the program by its path)"

/* Move into a mount namespace of our own; without root, into a user namespace as well. */
static int slot_enter_namespace(struct mp_err *err)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNS)) {
		if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return mp_err_set(
				err, errno,
				"cannot put a version in the place of the program: no mount "
				"namespace: %s" NO_RIGHT,
				strerror(errno));
		snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		slot_write_file("/proc/self/setgroups", "deny");
		if (slot_write_file("/proc/self/uid_map", map))
			return mp_err_set(err, EPERM, "--at: cannot map the user id");
		snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		if (slot_write_file("/proc/self/gid_map", map))
			return mp_err_set(err, EPERM, "--at: cannot map the group id");
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return mp_err_set(err, errno,
				  "cannot put a version in the place of the program: cannot make "
				  "the mounts private: %s" NO_RIGHT,
				  strerror(errno));
	return 0;
}

int me_slot_open(struct me_slot *slot, const char *parent, const char *name, const char *at,
		 struct mp_err *err)
{
	struct stat st;
	int ret;

	memset(slot, 0, sizeof(*slot));
	if (strlen(name) > 200 || strchr(name, '/') || !*name)
		return mp_err_set(err, EINVAL, "'%s': not usable as the programs' name (--name)",
				  name);
	if (at && (stat(at, &st) || !S_ISREG(st.st_mode)))
		return mp_err_set(err, ENOENT, "--at: %s: no regular file is there", at);
	if (snprintf(slot->dir, sizeof(slot->dir), "%s/morph-audit.XXXXXX", parent) >=
	    (int)sizeof(slot->dir))
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", parent);
	ret = me_scratch_make(slot->dir, err);
	if (ret)
		return ret;
	snprintf(slot->copy, sizeof(slot->copy), "%s/%s", slot->dir, name);
	snprintf(slot->fresh, sizeof(slot->fresh), "%s/%s.new", slot->dir, name);
	for (int i = 0; i < 2; i++)
		snprintf(slot->beside[i], sizeof(slot->beside[i]), "%s/%s.%d", slot->dir, name, i);
	slot->at = at;
	ret = at ? slot_enter_namespace(err) : 0;
	if (ret)
		me_slot_close(slot);
	return ret;
}

/* Copy with read and write instead of cloning blocks, so that the copy's pages are in memory. */
static int slot_copy(int from, int to)
{
	static char buf[1 << 20];
	off_t off = 0;
	ssize_t got;

	while ((got = pread(from, buf, sizeof(buf), off)) > 0) {
		char *at = buf;

		off += got;
		while (got > 0) {
			ssize_t put = write(to, at, (size_t)got);

			if (put < 0)
				return -errno;
			at += put;
			got -= put;
		}
	}
	return got < 0 ? -errno : 0;
}

static bool slot_program_changed(const struct me_program *program)
{
	struct stat st;

	return fstat(program->fd, &st) || st.st_size != program->st.st_size ||
	       st.st_mtim.tv_sec != program->st.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != program->st.st_mtim.tv_nsec;
}

/* Put a fresh copy of @program at @to. */
static int slot_put_at(const struct me_slot *slot, const struct me_program *program, const char *to,
		       struct mp_err *err)
{
	mode_t mode = (program->st.st_mode & 0777) | S_IRUSR;
	int fd, ret;

	/* Remove a file that a killed run left. O_EXCL refuses any other file there. */
	unlink(slot->fresh);
	fd = open(slot->fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", slot->fresh, strerror(errno));
	ret = slot_copy(program->fd, fd);
	if (!ret && fchmod(fd, mode))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && rename(slot->fresh, to))
		ret = -errno;
	if (ret)
		return mp_err_set(err, -ret, "%s: cannot be copied to %s: %s", program->path, to,
				  strerror(-ret));
	if (slot_program_changed(program))
		return mp_err_set(err, EBUSY, "%s: changed during the audit", program->path);
	return 0;
}

int me_slot_put_beside(const struct me_slot *slot, const struct me_program *program, int nr,
		       struct mp_err *err)
{
	return slot_put_at(slot, program, slot->beside[nr], err);
}

int me_slot_enter(const struct me_slot *slot, int nr, struct mp_err *err)
{
	int ret = slot_enter_namespace(err);

	if (!ret && mount(slot->beside[nr], me_slot_path(slot), NULL, MS_BIND, NULL))
		ret = mp_err_set(err, errno, "%s: cannot be mounted at %s: %s", slot->beside[nr],
				 me_slot_path(slot), strerror(errno));
	return ret;
}

int me_slot_put(struct me_slot *slot, const struct me_program *program, struct mp_err *err)
{
	int ret = slot_put_at(slot, program, slot->copy, err);

	if (ret)
		return ret;
	if (!slot->at)
		return 0;
	if (slot->mounted)
		umount2(slot->at, MNT_DETACH);
	slot->mounted = !mount(slot->copy, slot->at, NULL, MS_BIND, NULL);
	if (!slot->mounted)
		return mp_err_set(err, errno, "%s: cannot be mounted at %s: %s", program->path,
				  slot->at, strerror(errno));
	return 0;
}

const char *me_slot_path(const struct me_slot *slot)
{
	return slot->at ? slot->at : slot->copy;
}

void me_slot_close(struct me_slot *slot)
{
	if (!slot->dir[0])
		return;
	if (slot->mounted)
		umount2(slot->at, MNT_DETACH);
	slot->mounted = false;
	me_scratch_remove(slot->dir);
}
