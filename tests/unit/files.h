// SPDX-License-Identifier: Apache-2.0
/* files - whole files of tests. */
#ifndef MORPH_TESTS_FILES_H
#define MORPH_TESTS_FILES_H

#include "tests/unit/suite.h"

static inline void write_file(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(data, 1, size, file), size);
	ck_assert_int_eq(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
	write_file(path, text, strlen(text));
}

/* Ownership: free(). A zero byte follows the file's @size. */
static inline void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	char *data;

	ck_assert_ptr_nonnull(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	data = calloc(1, *size + 1);
	ck_assert_ptr_nonnull(data);
	ck_assert_uint_eq(fread(data, 1, *size, file), *size);
	fclose(file);
	return data;
}

static inline void file_holds(const char *path, const char *text)
{
	size_t size;
	char *data = read_file(path, &size);

	ck_assert_uint_eq(size, strlen(text));
	ck_assert_str_eq(data, text);
	free(data);
}

/* Everything in @dir and below that is no directory. */
static inline int nr_files_below(const char *dir)
{
	char command[512];
	FILE *pipe;
	int nr = -1;

	snprintf(command, sizeof(command), "find '%s' -mindepth 1 ! -type d | wc -l", dir);
	pipe = popen(command, "re");
	ck_assert_ptr_nonnull(pipe);
	ck_assert_int_eq(fscanf(pipe, "%d", &nr), 1);
	pclose(pipe);
	return nr;
}

#endif
