// SPDX-License-Identifier: Apache-2.0
/* whole_file - see whole_file.h. */
#include "daemon/fleet/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int md_sha256(const void *bytes, size_t size, uint8_t hash[MD_SHA256_SIZE])
{
	return EVP_Digest(bytes, size, hash, NULL, EVP_sha256(), NULL) ? 0 : -ENOMEM;
}

int md_whole_file_open(const char *path, struct md_whole_file *out, struct mp_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = 0;
	struct stat st;
	void *bytes = MAP_FAILED;

	*out = (struct md_whole_file){0};
	if (fd < 0 || fstat(fd, &st))
		r = errno;
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		r = EINVAL;
	if (!r) {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes == MAP_FAILED)
			r = errno;
	}
	if (fd >= 0)
		close(fd);
	if (r)
		return mp_err_set(err, r, "%s: %s", path,
				  r == EINVAL ? "is no regular file, or is empty" : strerror(r));
	out->bytes = bytes;
	out->size = (size_t)st.st_size;
	if (md_sha256(out->bytes, out->size, out->hash))
		return mp_err_set(err, ENOMEM, "out of memory");
	return 0;
}

void md_whole_file_close(struct md_whole_file *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->size);
	*file = (struct md_whole_file){0};
}
