// SPDX-License-Identifier: Apache-2.0
/* output_name - the default name of an output, and what the file with that name is. */
#include "editor/base/output_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libprof/note/map.h"

int me_output_name(const char *input, char *buf, size_t size, struct mp_err *err)
{
	int n = snprintf(buf, size, "%s.morph", input);

	return n < 0 || (size_t)n >= size
		       ? mp_err_set(err, ENAMETOOLONG, "the name of the output is too long")
		       : 0;
}

/* Read the map of the output at @path; it names the output's original. */
static int read_map(const char *path, struct mp_map **map, struct mp_err *err)
{
	struct mp_elf *elf;
	int rc = mp_elf_open(path, MP_ELF_ID, &elf, err);

	if (rc)
		return rc;
	rc = mp_map_read(elf, map, err);
	mp_elf_close(elf);
	return rc;
}

int me_output_replaceable(const char *path, struct mp_err *err)
{
	struct mp_map *map = NULL;
	int rc;

	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	rc = read_map(path, &map, err);
	mp_map_free(map);
	return rc ? mp_err_set(err, EEXIST,
			       "%s: exists, and morph-optimize did not write it; give -o FILE",
			       path)
		  : 0;
}

int me_output_made_of(const char *output, const char *original, struct mp_err *err)
{
	struct mp_elf *elf = NULL;
	struct mp_map *map = NULL;
	int rc;

	if (access(output, F_OK))
		return mp_err_set(err, errno, "%s: %s", output, strerror(errno));
	rc = mp_elf_open(original, MP_ELF_ID, &elf, err);
	if (!rc && read_map(output, &map, err))
		rc = mp_err_set(err, EINVAL, "%s: morph-optimize did not write this file", output);
	if (!rc && !mp_id_equal(&map->original, &elf->id))
		rc = mp_err_set(err, EINVAL,
				"%s: was made of another build of %s; run morph-optimize again",
				output, original);
	mp_map_free(map);
	mp_elf_close(elf);
	return rc;
}
