// SPDX-License-Identifier: Apache-2.0
/* json - builds JSON that is always valid; see json.h. */
#include "libprof/cli/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool ran_out;

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		atomic_store_explicit(&ran_out, true, memory_order_relaxed);
	return memory;
}

/* Before any object is made. Fields are put into objects in many places, of which none looks at its result. */
__attribute__((constructor)) static void watch_memory(void)
{
	json_set_alloc_funcs(allocate, free);
}

bool mp_json_is_whole(const json_t *root)
{
	return root && !atomic_load_explicit(&ran_out, memory_order_relaxed);
}

json_t *mp_json_new(int schema, const char *command)
{
	return json_pack("{s:i, s:s}", "schema", schema, "command", command);
}

/* Number of bytes of the character at @text; 0 if they are no character. */
static size_t character_size(const char *text)
{
	size_t left = strnlen(text, 4);

	for (size_t size = 1; size <= left; size++) {
		json_t *string = json_stringn(text, size);

		json_decref(string);
		if (string)
			return size;
	}
	return 0;
}

json_t *mp_json_string(const char *text)
{
	json_t *string = text ? json_string(text) : json_null();
	size_t nr = 0, size;
	char *whole;

	if (string)
		return string;
	whole = malloc(3 * strlen(text) + 1);
	if (!whole)
		return NULL;
	while (*text) {
		size = character_size(text);
		memcpy(whole + nr, size ? text : "\xef\xbf\xbd", size ? size : 3);
		nr += size ? size : 3;
		text += size ? size : 1;
	}
	string = json_stringn(whole, nr);
	free(whole);
	return string;
}

json_t *mp_json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *mp_json_address(uint64_t vaddr)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, vaddr);
	return json_string(text);
}

int mp_json_save(json_t *root, const char *path, struct mp_err *err)
{
	char new[PATH_MAX];
	int fd = -1, ret = 0;

	if (!mp_json_is_whole(root))
		ret = mp_err_code(err, ENOMEM);
	else if (snprintf(new, sizeof(new), "%s.new", path) >= (int)sizeof(new))
		ret = mp_err_set(err, ENAMETOOLONG, "%s: too long", path);
	if (!ret)
		fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* Seventeen digits: a number is read as the same. */
	if (!ret && (fd < 0 || json_dumpfd(root, fd, JSON_REAL_PRECISION(17)) || fsync(fd) ||
		     rename(new, path)))
		ret = mp_err_set(err, errno, "%s: cannot be written", path);
	if (fd >= 0)
		close(fd);
	json_decref(root);
	return ret;
}
