// SPDX-License-Identifier: Apache-2.0
/*
 * loader - runs a library's spin(). The library is loaded late, and its file may change.
 *
 *	loader MS LIBRARY [OTHER]	dlopen, spin, dlclose; with OTHER, write its bytes into
 *					the file LIBRARY and repeat
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const char *path, long ms)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*spin)(long) = library ? (void (*)(long))dlsym(library, "spin") : NULL;

	if (!spin) {
		fprintf(stderr, "loader: %s\n", dlerror());
		return 1;
	}
	spin(ms);
	return dlclose(library);
}

static int overwrite(const char *path, const char *other)
{
	FILE *from = fopen(other, "r"), *to = fopen(path, "r+");
	int c;

	if (!from || !to)
		return 1;
	while ((c = getc(from)) != EOF)
		putc(c, to);
	fclose(from);
	return fclose(to);
}

int main(int argc, char **argv)
{
	if (argc < 3 || run(argv[2], atol(argv[1])))
		return 1;
	return argc > 3 && (overwrite(argv[2], argv[3]) || run(argv[2], atol(argv[1])));
}
