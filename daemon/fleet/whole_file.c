// SPDX-License-Identifier: Apache-2.0
/* whole_file - see whole_file.h. */
#include "daemon/fleet/whole_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libprof/base/infile.h"

int md_whole_file_open(const char *path, struct md_whole_file *out, struct mp_err *err)
{
	uint64_t size;
	int fd = mp_infile_regular(path, &size, err);
	void *bytes;

	*out = (struct md_whole_file){0};
	if (fd < 0)
		return fd;
	bytes = size ? mp_infile_map(fd, size) : MAP_FAILED;
	close(fd);
	if (bytes == MAP_FAILED)
		return mp_err_set(err, size ? errno : EINVAL, "%s: cannot be mapped, or is empty",
				  path);
	out->bytes = bytes;
	out->size = size;
	mp_sha256(bytes, size, out->hash);
	return 0;
}

void md_whole_file_close(struct md_whole_file *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->size);
	*file = (struct md_whole_file){0};
}
