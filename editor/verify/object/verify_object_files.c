// SPDX-License-Identifier: Apache-2.0
/* verify_object_files - two objects, or two archives member by member. */
#include <ar.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "editor/verify/object/verify_object.h"
#include "libprof/base/grow.h"
#include "libprof/base/infile.h"
#include "libprof/base/search.h"

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

/* Where the members of both archives begin, in their order. */
struct members {
	struct {
		size_t old, new;
	} * at;
	uint32_t nr, cap;
	struct mapped old_index, new_index; /* the member with the symbols, if there is one */
};

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Return: the new place of the member that began at @old; 0: none did. */
static size_t place_of(const struct members *members, size_t old)
{
	uint32_t low = mp_search(i, 0, members->nr, members->at[i].old < old);

	return low < members->nr && members->at[low].old == old ? members->at[low].new : 0;
}

/* The index: a number of symbols, for each the place of its member, and their names. */
static bool same_index(const struct members *members)
{
	const struct mapped *a = &members->old_index, *b = &members->new_index;
	uint64_t nr;

	if (a->size != b->size || a->size < 4)
		return a->size == b->size;
	nr = big_endian(a->bytes);
	if (nr != big_endian(b->bytes) || 4 + 4 * nr > a->size ||
	    memcmp(a->bytes + 4 + 4 * nr, b->bytes + 4 + 4 * nr, a->size - 4 - 4 * nr))
		return false;
	for (uint64_t i = 1; i <= nr; i++)
		if (place_of(members, big_endian(a->bytes + 4 * i)) != big_endian(b->bytes + 4 * i))
			return false;
	return true;
}

static int compare_members(const struct mapped *old, const struct mapped *new,
			   struct members *members, struct me_verify_object_report *report,
			   struct mp_err *err)
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
		if (!memcmp(x->ar_name, "/ ", 2) && a == SARMAG) {
			members->old_index = i;
			members->new_index = k;
		}
		if (mp_grow(members->at, members->cap, members->nr + 1))
			return mp_err_set(err, ENOMEM, "out of memory");
		members->at[members->nr].old = a;
		members->at[members->nr++].new = b;
		a += sizeof(*x) + i.size + (i.size & 1);
		b += sizeof(*y) + k.size + (k.size & 1);
		if (members->nr == 1 && members->old_index.bytes)
			continue;
		if (i.size == k.size && !memcmp(i.bytes, k.bytes, i.size))
			report->nr_same++;
		else
			rc = me_verify_object(i.bytes, i.size, k.bytes, k.size, report, err);
		if (rc)
			return rc;
	}
	return same_index(members) ? 0 : mp_err_set(err, EPERM, "the symbol indexes differ");
}

int me_verify_object_files(const char *old, const char *new, struct me_verify_object_report *report,
			   struct mp_err *err)
{
	struct mapped a = {0}, b = {0};
	struct members members = {0};
	struct mp_err why;
	int rc = map(old, &a, err);

	if (!rc)
		rc = map(new, &b, err);
	if (!rc && a.size >= SARMAG && !memcmp(a.bytes, ARMAG, SARMAG)) {
		rc = b.size < SARMAG || memcmp(b.bytes, ARMAG, SARMAG)
			     ? mp_err_set(&why, EPERM, "is no archive")
			     : compare_members(&a, &b, &members, report, &why);
		free(members.at);
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
