// SPDX-License-Identifier: Apache-2.0
/* file_state - reads a file once; see file_state.h. */
#include "daemon/worker/file_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libprof/elf/elf.h"
#include "libprof/note/audit_table.h"
#include "libprof/note/map.h"

static int open_file(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int code;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, st) && S_ISREG(st->st_mode))
		return fd;
	code = S_ISREG(st->st_mode) ? errno : ENOEXEC;
	close(fd);
	return -code;
}

static int hash_fd(int fd, char hash[33])
{
	XXH3_state_t *state = XXH3_createState();
	unsigned char *buf = malloc(1 << 16);
	XXH128_canonical_t digest;
	ssize_t n = -1;
	off_t at = 0;

	errno = ENOMEM;
	if (state && buf && XXH3_128bits_reset(state) == XXH_OK)
		while ((n = pread(fd, buf, 1 << 16, at)) > 0) {
			XXH3_128bits_update(state, buf, (size_t)n);
			at += n;
		}
	if (!n) {
		XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(state));
		for (int i = 0; i < 16; i++)
			sprintf(hash + 2 * i, "%02x", digest.digest[i]);
	}
	XXH3_freeState(state);
	free(buf);
	return n ? -errno : 0;
}

int md_file_hash(const char *path, char hash[33])
{
	struct stat st;
	int fd = open_file(path, &st), ret;

	if (fd < 0)
		return fd;
	ret = hash_fd(fd, hash);
	close(fd);
	return ret;
}

static int read_note(const char *path, const struct mp_elf *elf, struct md_file_state *out,
		     struct mp_err *err)
{
	struct mp_map *map = NULL;
	struct mp_err why = {""};
	int ret = mp_map_read(elf, &map, &why);

	out->is_output = !ret;
	out->audits = !ret && mp_elf_section(elf, MP_AUDIT_TABLE_SECTION);
	if (!ret)
		out->original = map->original;
	mp_map_free(map);
	if (ret == -ENOENT)
		return 0;
	return ret ? mp_err_set(err, -ret, "%s: %s", path, why.msg) : 0;
}

int md_file_look(const char *path, struct md_file_state *out, struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	struct stat st = {0};
	int fd = open_file(path, &st), ret;

	*out = (struct md_file_state){
		.size = (uint64_t)st.st_size, .uid = st.st_uid, .changed = st.st_ctim};
	if (fd < 0)
		return mp_err_set(err, -fd, "%s: %s", path, strerror(-fd));
	ret = mp_elf_open_fd(path, fd, MP_ELF_ID, &elf, err);
	if (!ret) {
		out->id = elf->id;
		ret = read_note(path, elf, out, err);
	}
	mp_elf_close(elf);
	if (!ret) {
		ret = hash_fd(fd, out->hash);
		if (ret)
			mp_err_set(err, -ret, "%s: %s", path, strerror(-ret));
	}
	close(fd);
	return ret;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool md_file_is_as(const struct stat *now, const struct stat *was)
{
	return now->st_dev == was->st_dev && now->st_ino == was->st_ino &&
	       now->st_size == was->st_size && now->st_mode == was->st_mode &&
	       now->st_uid == was->st_uid && now->st_gid == was->st_gid &&
	       same_time(&now->st_mtim, &was->st_mtim) && same_time(&now->st_ctim, &was->st_ctim);
}
