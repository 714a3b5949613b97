// SPDX-License-Identifier: Apache-2.0
/* debuginfod - loads the library and limits the time; see debuginfod.h. */
#include "daemon/code/debuginfod.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/originals.h"
#include "libprof/base/clock.h"

/* The used parts of <elfutils/debuginfod.h>, so that the header need not be installed. */
struct debuginfod_client;
typedef struct debuginfod_client *begin_fn(void);
typedef void end_fn(struct debuginfod_client *client);
typedef int find_fn(struct debuginfod_client *client, const unsigned char *build_id,
		    int build_id_len, char **path);
typedef int progress_fn(struct debuginfod_client *client, long a, long b);
typedef void set_progress_fn(struct debuginfod_client *client, progress_fn *progress);

static char *urls;
static double spent_s, began_s;

void md_debuginfod_init(void)
{
	const char *text = getenv("DEBUGINFOD_URLS");

	urls = text && *text ? strdup(text) : NULL;
}

static int is_late(struct debuginfod_client *client, long a, long b)
{
	(void)client;
	(void)a;
	(void)b;
	return spent_s + mp_now_s() - began_s > MD_DEBUGINFOD_SECONDS;
}

/*
 * Loads a function's address. ISO C cannot cast a data pointer to a function pointer, hence
 * memcpy().
 */
static bool load(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);

	memcpy(function, &found, sizeof(found));
	return found;
}

char *md_debuginfod_find(const struct mp_id *id, enum md_debuginfod_what what)
{
	static const char *const finds[] = {"debuginfod_find_executable",
					    "debuginfod_find_debuginfo"};
	struct debuginfod_client *client;
	set_progress_fn *set_progress;
	begin_fn *begin;
	find_fn *find;
	end_fn *end;
	void *library;
	char *path = NULL;
	int fd = -1;

	if (!urls || !id->build_id_len || spent_s > MD_DEBUGINFOD_SECONDS)
		return NULL;
	library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NULL;
	if (!load(library, "debuginfod_begin", &begin) || !load(library, "debuginfod_end", &end) ||
	    !load(library, "debuginfod_set_progressfn", &set_progress) ||
	    !load(library, finds[what], &find))
		return NULL;
	setenv("DEBUGINFOD_URLS", urls, 1);
	began_s = mp_now_s();
	client = begin();
	if (client) {
		set_progress(client, is_late);
		fd = find(client, id->build_id, id->build_id_len, &path);
		end(client);
	}
	spent_s += mp_now_s() - began_s;
	unsetenv("DEBUGINFOD_URLS");
	if (fd < 0)
		return NULL;
	close(fd);
	return path;
}
