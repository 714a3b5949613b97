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

#define SIZE_MAX_BYTES (16 << 20)

/* Reads at most @size bytes. Return: NULL: failed. */
static char *read_all(int fd, size_t size, size_t *nr)
{
	char *text = malloc(size + 1);

	*nr = 0;
	while (text && *nr < size) {
		ssize_t n = read(fd, text + *nr, size - *nr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			free(text);
			return NULL;
		}
		if (!n)
			break;
		*nr += (size_t)n;
	}
	return text;
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

static void load(struct md_srcfile *file, int64_t built_s)
{
	/* O_NONBLOCK: do not wait for a FIFO or a device. */
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t size = 0;

	if (fd < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			file->why = "cannot be opened";
		return;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		file->why = "not a regular file";
	else if (st.st_size > SIZE_MAX_BYTES)
		file->why = "too large";
	else if (built_s && st.st_mtime > built_s)
		file->why = "written after the program was built: its lines are not shown";
	else
		file->text = read_all(fd, (size_t)st.st_size, &size);
	close(fd);
	if (file->text && index_lines(file, size)) {
		free(file->text);
		file->text = NULL;
	}
}

const struct md_srcfile *md_srcfiles_get(struct md_srcfiles *files, const char *path)
{
	struct md_srcfile *file;
	void *bigger;

	for (size_t i = 0; i < files->nr; i++)
		if (!strcmp(files->files[i].path, path))
			return &files->files[i];
	bigger = realloc(files->files, (files->nr + 1) * sizeof(*files->files));
	if (!bigger)
		return NULL;
	files->files = bigger;
	file = &files->files[files->nr];
	memset(file, 0, sizeof(*file));
	file->path = strdup(path);
	if (!file->path)
		return NULL;
	files->nr++;
	load(file, files->built_s);
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
