// SPDX-License-Identifier: Apache-2.0
/* verify_object_files - two objects, or two archives member by member. */
#include <ar.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "editor/verify/object/verify_object.h"
#include "libprof/base/infile.h"

struct mapped {
	const uint8_t *bytes;
	size_t size;
};

static int map(const char *path, struct mapped *m, struct mp_err *err)
{
	void *bytes = MAP_FAILED;
	uint64_t size;
	int fd = mp_infile_regular(path, &size, err), code;

	if (fd < 0)
		return fd;
	if (size)
		bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	code = errno;
	close(fd);
	if (!size)
		return mp_err_set(err, EIO, "%s: is empty", path);
	if (bytes == MAP_FAILED)
		return mp_err_set(err, code, "%s: cannot be mapped: %s", path, strerror(code));
	*m = (struct mapped){bytes, size};
	return 0;
}

/* The member at @off. Return: false: none, or damaged. */
static bool member_at(const struct mapped *m, size_t off, const struct ar_hdr **header,
		      struct mapped *data)
{
	char digits[sizeof((*header)->ar_size) + 1] = {0};
	size_t size;

	if (off > m->size || m->size - off < sizeof(**header))
		return false;
	*header = (const struct ar_hdr *)(m->bytes + off);
	memcpy(digits, (*header)->ar_size, sizeof((*header)->ar_size));
	size = strtoul(digits, NULL, 10);
	if (memcmp((*header)->ar_fmag, ARFMAG, 2) || size > m->size - off - sizeof(**header))
		return false;
	*data = (struct mapped){m->bytes + off + sizeof(**header), size};
	return true;
}

static int compare_members(const struct mapped *old, const struct mapped *new,
			   struct me_verify_object_report *report, struct mp_err *err)
{
	size_t a = SARMAG, b = SARMAG;

	while (a < old->size || b < new->size) {
		const struct ar_hdr *x, *y;
		struct mapped i, k;
		int rc = 0;

		if (!member_at(old, a, &x, &i) || !member_at(new, b, &y, &k))
			return mp_err_set(err, EPERM, "the archives have other members");
		if (memcmp(x->ar_name, y->ar_name, sizeof(x->ar_name)))
			return mp_err_set(err, EPERM, "the archives have other members");
		a += sizeof(*x) + i.size + (i.size & 1);
		b += sizeof(*y) + k.size + (k.size & 1);
		if (!memcmp(x->ar_name, "/ ", 2)) { /* offsets, which differ; linkers check them */
			if (i.size != k.size)
				return mp_err_set(err, EPERM, "the symbol indexes differ");
			continue;
		}
		if (i.size == k.size && !memcmp(i.bytes, k.bytes, i.size))
			report->nr_same++;
		else
			rc = me_verify_object(i.bytes, i.size, k.bytes, k.size, report, err);
		if (rc)
			return rc;
	}
	return 0;
}

int me_verify_object_files(const char *old, const char *new, struct me_verify_object_report *report,
			   struct mp_err *err)
{
	struct mapped a = {0}, b = {0};
	struct mp_err why;
	int rc = map(old, &a, err);

	if (!rc)
		rc = map(new, &b, err);
	if (!rc && a.size >= SARMAG && !memcmp(a.bytes, ARMAG, SARMAG)) {
		rc = b.size < SARMAG || memcmp(b.bytes, ARMAG, SARMAG)
			     ? mp_err_set(&why, EPERM, "is no archive")
			     : compare_members(&a, &b, report, &why);
	} else if (!rc && a.size == b.size && !memcmp(a.bytes, b.bytes, a.size)) {
		report->nr_same++;
	} else if (!rc) {
		rc = me_verify_object(a.bytes, a.size, b.bytes, b.size, report, &why);
	}
	if (rc && a.bytes && b.bytes)
		mp_err_set(err, -rc, "%s: %s", new, why.msg);
	if (a.bytes)
		munmap((void *)a.bytes, a.size);
	if (b.bytes)
		munmap((void *)b.bytes, b.size);
	return rc;
}
