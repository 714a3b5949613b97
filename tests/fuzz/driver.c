// SPDX-License-Identifier: Apache-2.0
/*
 * driver - runs a fuzz target over a few fixed inputs, files and directories, without libFuzzer.
 * It finds nothing new; it only shows that old findings stay fixed.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	uint8_t *data = NULL;
	struct stat st;
	size_t size;
	FILE *file;
	int ret = -1;

	file = fopen(path, "rb");
	if (!file || fstat(fileno(file), &st))
		goto out;
	size = (size_t)st.st_size;
	/* Exactly as large as the input, so that a read beyond it is detected. */
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, file) != size)
		goto out;
	LLVMFuzzerTestOneInput(data, size);
	ret = 0;
out:
	if (ret)
		perror(path);
	free(data);
	if (file)
		fclose(file);
	return ret;
}

static int run_dir(const char *path)
{
	struct dirent *entry;
	char name[4096];
	int ret = 0;
	DIR *dir;

	dir = opendir(path);
	if (!dir)
		return run_file(path);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		ret |= run_file(name);
	}
	closedir(dir);
	return ret;
}

static void run_made_up(void)
{
	static const size_t sizes[] = {0, 1, 7, 64, 4096};
	size_t i, j;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *data = malloc(sizes[i] ? sizes[i] : 1);

		if (!data)
			return;
		for (j = 0; j < sizes[i]; j++)
			data[j] = (uint8_t)(j * 31 + i);
		LLVMFuzzerTestOneInput(data, sizes[i]);
		free(data);
	}
}

int main(int argc, char **argv)
{
	int i, ret = 0;

	run_made_up();
	for (i = 1; i < argc; i++)
		ret |= run_dir(argv[i]);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
