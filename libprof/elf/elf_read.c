// SPDX-License-Identifier: Apache-2.0
/* elf_read - reads bytes of a file that may not be mapped. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libprof/elf/elf_private.h"

int mp_elf_read(const struct mp_elf *elf, uint64_t off, size_t size, void *buf, struct mp_err *err)
{
	const struct mp_elf_private *priv = elf->private_data;
	size_t done = 0;

	if (!mp_elf_in_file(elf, off, size))
		return mp_err_set(err, EBADMSG, "%s: truncated: offset 0x%" PRIx64 " is beyond it",
				  elf->path, off);
	if (priv->fd < 0) {
		if (size)
			memcpy(buf, elf->data + off, size);
		return 0;
	}
	while (done < size) {
		ssize_t n = pread(priv->fd, (char *)buf + done, size - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mp_err_set(err, errno, "%s: %s", elf->path, strerror(errno));
		if (n == 0)
			return mp_err_set(err, EBADMSG, "%s: became shorter while it was read",
					  elf->path);
		done += (size_t)n;
	}
	return 0;
}

bool mp_elf_in_file(const struct mp_elf *elf, uint64_t off, uint64_t size)
{
	return off <= elf->size && size <= elf->size - off;
}
