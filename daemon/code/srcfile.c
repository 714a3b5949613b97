// SPDX-License-Identifier: Apache-2.0
/*
 * srcfile - loads source files; see srcfile.h. Decides that a file written after the program
 * was built is not shown, since its lines would appear at the wrong instructions.
 */
#include "daemon/code/srcfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/err.h"
#include "libprof/base/grow.h"

#define SIZE_MAX_BYTES (16 << 20)

/* Reads at most @size bytes into file->text. Return: 0, -errno. */
static int read_all(struct md_srcfile *file, int fd, size_t size, size_t *nr)
{
	*nr = 0;
	file->text = malloc(size + 1);
	if (!file->text)
		return -ENOMEM;
	while (*nr < size) {
		ssize_t n = read(fd, file->text + *nr, size - *nr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		*nr += (size_t)n;
	}
	return 0;
}

static int index_lines(struct md_srcfile *file, size_t size)
{
	size_t nr = 0, max = 1;

	for (size_t i = 0; i < size; i++)
		max += file->text[i] == '\n';
	file->starts = malloc((max + 1) * sizeof(*file->starts));
	if (!file->starts)
		return -ENOMEM;
	for (size_t i = 0; i < size;) {
		const char *end = memchr(file->text + i, '\n', size - i);

		file->starts[nr++] = i;
		i = end ? (size_t)(end - file->text) + 1 : size;
	}
	file->starts[nr] = size;
	file->nr_lines = nr;
	return 0;
}

/* Return: 0, also if there is nothing to show; -errno. */
static int load(struct md_srcfile *file, int64_t built_s)
{
	/* O_NONBLOCK: do not wait for a FIFO or a device. */
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t size = 0;
	int r = 0;

	if (fd < 0) {
		r = -errno;
		if (r != -ENOENT && r != -ENOTDIR)
			file->why = "cannot be opened";
		return mp_err_is_failure(r) ? r : 0;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		file->why = "not a regular file";
	else if (st.st_size > SIZE_MAX_BYTES)
		file->why = "too large";
	else if (built_s && st.st_mtime > built_s)
		file->why = "written after the program was built: its lines are not shown";
	else
		r = read_all(file, fd, (size_t)st.st_size, &size);
	close(fd);
	if (!r && file->text)
		r = index_lines(file, size);
	if (r) {
		free(file->text);
		file->text = NULL;
	}
	return r;
}

const struct md_srcfile *md_srcfiles_get(struct md_srcfiles *files, const char *path)
{
	struct md_srcfile *file;
	int r;

	for (size_t i = 0; i < files->nr; i++)
		if (!strcmp(files->files[i].path, path))
			return &files->files[i];
	if (mp_resize(files->files, files->nr + 1)) {
		files->failed = -ENOMEM;
		return NULL;
	}
	file = &files->files[files->nr];
	memset(file, 0, sizeof(*file));
	file->path = strdup(path);
	if (!file->path) {
		files->failed = -ENOMEM;
		return NULL;
	}
	files->nr++;
	r = load(file, files->built_s);
	if (r)
		files->failed = r;
	return file;
}

void md_srcfiles_fini(struct md_srcfiles *files)
{
	for (size_t i = 0; i < files->nr; i++) {
		free(files->files[i].path);
		free(files->files[i].text);
		free(files->files[i].starts);
	}
	free(files->files);
	files->files = NULL;
	files->nr = 0;
}

const char *md_srcfile_line(const struct md_srcfile *file, int line, size_t *len)
{
	size_t start, end;

	if (!file->text || line < 1 || (size_t)line > file->nr_lines)
		return NULL;
	start = file->starts[line - 1];
	end = file->starts[line];
	while (end > start && (file->text[end - 1] == '\n' || file->text[end - 1] == '\r'))
		end--;
	*len = end - start;
	return file->text + start;
}
