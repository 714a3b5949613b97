// SPDX-License-Identifier: Apache-2.0
/* object_kind - see object_kind.h. */
#include "editor/base/object_kind.h"

#include <ar.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libprof/elf/relobj.h"

int me_object_kind(const char *path, enum me_object_kind *kind, struct mp_err *err)
{
	uint8_t start[sizeof(Elf64_Ehdr)];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, start, sizeof(start), 0);
	int code = n < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	*kind = ME_OBJECT_NONE;
	/* Any other fault of the file is reported by the code that opens it. */
	if (mp_err_is_failure(-code))
		return mp_err_set(err, code, "%s: %s", path, strerror(code));
	if (n >= SARMAG && !memcmp(start, ARMAG, SARMAG))
		*kind = ME_OBJECT_ARCHIVE;
	else if (n > 0 && mp_relobj_is(start, (size_t)n))
		*kind = ME_OBJECT_REL;
	return 0;
}
