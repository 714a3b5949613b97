// SPDX-License-Identifier: Apache-2.0
/* package_files - see package_files.h. A package is an ar archive with a compressed tar archive in it. */
#include "daemon/fleet/packages/package_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fleet/packages/archive_bytes.h"
#include "daemon/fleet/confined.h"
#include "libprof/note/map.h"

/* The largest window of xz and zstd, and one file. */
#define MEMORY	(MD_PACKAGE_FILE_MAX + (UINT64_C(256) << 20))
#define SECONDS 900
/* The programs of one package. A package that has more is refused. */
#define IDS_MAX 65536

enum outcome {
	DONE,
	NOT_THERE,
	NO_PACKAGE,
	DAMAGED,
	TOO_LARGE, /* for the memory, or for the disk */
};

bool md_original_has(const struct mp_elf *elf, const struct mp_id *id)
{
	struct mp_map *map = NULL;
	bool has = mp_id_equal(&elf->id, id) && mp_map_read(elf, &map, NULL);

	mp_map_free(map);
	return has;
}

/* ---- in the confined process --------------------------------------------------------------- */

/* NULL: all of them are wanted, and only their identities. */
struct task {
	const struct mp_id *wanted;
};

struct bytes {
	uint8_t *data;
	size_t size;
};

static bool put_all(const void *data, size_t size)
{
	const uint8_t *p = data;

	while (size) {
		ssize_t n = write(MD_CONFINED_OUT, p, size);

		if (n <= 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

/* Return: DONE: this was the file that is wanted; NOT_THERE: go on. */
static enum outcome see_elf(const struct task *task, const struct bytes *file)
{
	enum outcome r = NOT_THERE;
	struct mp_elf *elf;

	/* A package may hold any files; those that this host cannot read are no originals. */
	if (mp_elf_open_memory("file", file->data, file->size, MP_ELF_ID, &elf, NULL))
		return NOT_THERE;
	if (!task->wanted) {
		if (md_original_has(elf, &elf->id) && !put_all(&elf->id, sizeof(elf->id)))
			r = TOO_LARGE;
	} else if (md_original_has(elf, task->wanted)) {
		r = put_all(file->data, file->size) ? DONE : TOO_LARGE;
	}
	mp_elf_close(elf);
	return r;
}

/* Reads one regular file, if it begins like an ELF file. */
static enum outcome see_file(const struct task *task, struct archive *tar, uint64_t size)
{
	static const uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
	struct bytes file = {.size = (size_t)size};
	uint8_t first[sizeof(magic)];
	enum outcome r = DAMAGED;

	if (archive_read_data(tar, first, sizeof(first)) != sizeof(first))
		return DAMAGED;
	if (memcmp(first, magic, sizeof(magic)) != 0)
		return NOT_THERE;
	file.data = malloc(file.size);
	if (!file.data)
		return TOO_LARGE;
	memcpy(file.data, first, sizeof(first));
	if (archive_read_data(tar, file.data + sizeof(first), file.size - sizeof(first)) ==
	    (la_ssize_t)(file.size - sizeof(first)))
		r = see_elf(task, &file);
	free(file.data);
	return r;
}

static enum outcome see_files(const struct task *task, struct archive *tar)
{
	struct archive_entry *entry;
	int next;

	while ((next = archive_read_next_header(tar, &entry)) == ARCHIVE_OK ||
	       next == ARCHIVE_WARN) {
		int64_t size = archive_entry_size(entry);
		enum outcome r;

		/* No links of either kind: the file that a link names has its own entry. */
		if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) ||
		    size < (int64_t)sizeof(Elf64_Ehdr) || size > (int64_t)MD_PACKAGE_FILE_MAX)
			continue;
		r = see_file(task, tar, (uint64_t)size);
		if (r != NOT_THERE)
			return r;
	}
	return next == ARCHIVE_EOF ? NOT_THERE : DAMAGED;
}

/* The next bytes of the member that holds the files. */
static la_ssize_t read_member(struct archive *a, void *arg, const void **out)
{
	size_t size = 0;
	la_int64_t off;
	int r;

	(void)a;
	do
		r = archive_read_data_block(arg, out, &size, &off);
	while (r == ARCHIVE_OK && !size);
	return r == ARCHIVE_OK ? (la_ssize_t)size : r == ARCHIVE_EOF ? 0 : -1;
}

static enum outcome see_member(const struct task *task, struct archive *package)
{
	struct archive *tar = archive_read_new();
	enum outcome r = DAMAGED;

	if (!tar)
		return TOO_LARGE;
	if (md_archive_allow_filters(tar) == ARCHIVE_OK &&
	    archive_read_support_format_tar(tar) == ARCHIVE_OK &&
	    archive_read_open2(tar, package, NULL, read_member, NULL, NULL) == ARCHIVE_OK)
		r = see_files(task, tar);
	archive_read_free(tar);
	return r;
}

static enum outcome see_package(const struct task *task, struct archive *package)
{
	struct archive_entry *entry;
	bool first = true;

	for (; archive_read_next_header(package, &entry) == ARCHIVE_OK; first = false) {
		const char *name = archive_entry_pathname(entry);

		if (!name || (first && strcmp(name, "debian-binary") != 0))
			return NO_PACKAGE;
		if (!strncmp(name, "data.tar", 8))
			return see_member(task, package);
	}
	return first ? NO_PACKAGE : DAMAGED;
}

static int read_package(const void *arg)
{
	static struct md_archive_bytes bytes = {.fd = MD_CONFINED_IN};
	struct archive *package = archive_read_new();
	enum outcome r = NO_PACKAGE;

	if (!package)
		return TOO_LARGE;
	if (archive_read_support_format_ar(package) == ARCHIVE_OK &&
	    md_archive_open(package, &bytes) == ARCHIVE_OK)
		r = see_package(arg, package);
	archive_read_free(package);
	return r;
}

/* ---- the caller ---------------------------------------------------------------------------- */

static int say(int r, const char *name, const struct mp_err *why, struct mp_err *err)
{
	/* Its reader did something else than reading; a tar archive that dpkg would not read may lead to this, too. */
	if (r == -EBADMSG)
		r = DAMAGED;
	if (r < 0)
		return mp_err_set(err, -r, "%s: %s", name, why->msg);
	switch (r) {
	case DONE: return 0;
	case NOT_THERE: return mp_err_set(err, ENODATA, "%s: does not have the file", name);
	case NO_PACKAGE: return mp_err_set(err, EBADMSG, "%s: is no Debian package", name);
	case TOO_LARGE:
		return mp_err_set(err, ENOSPC,
				  "%s: unpacking it needs more memory or disk than there is", name);
	default: return mp_err_set(err, EBADMSG, "%s: is damaged or cut short", name);
	}
}

/* A pipe or a device among packages is not opened. */
static int open_package(const char *path, const char *name, struct mp_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		mp_err_set(err, errno, "%s: %s", name, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		mp_err_set(err, EBADMSG, "%s: is no regular file", name);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -EBADMSG;
}

/*
 * Archives by POSIX have names in UTF-8, which their reader converts. The C library reads files for the first
 * conversion, which the confined process cannot do. So it is made here, and stays.
 */
static void load_conversion(void)
{
	static bool is_loaded;

	if (!is_loaded)
		iconv_open(nl_langinfo(CODESET), "UTF-8");
	is_loaded = true;
}

static int run(const char *path, const char *name, const struct task *task, int out_fd,
	       const struct md_package_look *look, struct mp_err *err)
{
	struct md_confined c = {.out_fd = out_fd,
				.work = read_package,
				.arg = task,
				.memory = MEMORY,
				.seconds = SECONDS,
				.look = look->look,
				.look_arg = look->arg};
	struct mp_err why = {""};
	int r;

	c.in_fd = open_package(path, name, err);
	if (c.in_fd < 0)
		return c.in_fd;
	load_conversion();
	r = md_confined_run(&c, &why);
	close(c.in_fd);
	return say(r, name, &why, err);
}

static int read_ids(int fd, const char *path, struct mp_id **ids, size_t *nr, struct mp_err *err)
{
	struct stat st;
	size_t size;

	if (fstat(fd, &st))
		return mp_err_set(err, errno, "%s: %s", path, strerror(errno));
	size = (size_t)st.st_size;
	*nr = size / sizeof(**ids);
	if (size % sizeof(**ids) || *nr > IDS_MAX)
		return mp_err_set(err, EBADMSG, "%s: has more programs than a package has", path);
	*ids = calloc(*nr + 1, sizeof(**ids));
	if (!*ids)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (pread(fd, *ids, size, 0) != (ssize_t)size)
		return mp_err_set(err, EIO, "%s: %s", path, strerror(EIO));
	/* A process that its input took over says what it likes. */
	for (size_t i = 0; i < *nr; i++)
		if ((*ids)[i].build_id_len > MP_BUILD_ID_MAX)
			return mp_err_set(err, EBADMSG, "%s: is damaged or cut short", path);
	return 0;
}

int md_package_files_list(const char *path, const char *dir, const struct md_package_look *look,
			  struct mp_id **ids, size_t *nr, struct mp_err *err)
{
	const struct task task = {NULL};
	int fd = md_confined_file(dir, err), r;

	*ids = NULL;
	*nr = 0;
	if (fd < 0)
		return fd;
	r = run(path, path, &task, fd, look, err);
	if (r == -ENODATA)
		r = read_ids(fd, path, ids, nr, err);
	if (r) {
		free(*ids);
		*ids = NULL;
		*nr = 0;
	}
	close(fd);
	return r;
}

int md_package_files_take(const char *path, const char *name, const struct mp_id *id,
			  const char *out, const struct md_package_look *look, struct mp_err *err)
{
	const struct task task = {id};
	int fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return mp_err_set(err, errno, "%s: %s", out, strerror(errno));
	r = run(path, name, &task, fd, look, err);
	close(fd);
	if (r)
		unlink(out);
	return r;
}
