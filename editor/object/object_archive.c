// SPDX-License-Identifier: Apache-2.0
/*
 * object_archive - rewrites the objects of an archive in GNU's format. Members keep their order,
 * names and times; the symbol index keeps its symbols, since rewriting changes no global one.
 */
#include <ar.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/elf/relobj.h"

struct member {
	uint64_t old_off, new_off; /* of the header */
};

struct archive {
	const uint8_t *bytes;
	size_t size;
	const char *names; /* the member // */
	size_t names_size;
	struct member *members;
	uint32_t nr, cap;
	uint64_t index_off, index_size; /* of the symbol index in the output; 0: none */
};

/* Return: -1: no number. */
static int64_t read_size(const struct ar_hdr *header)
{
	int64_t size = 0;
	size_t i = 0;

	for (;
	     i < sizeof(header->ar_size) && header->ar_size[i] >= '0' && header->ar_size[i] <= '9';
	     i++)
		size = 10 * size + (header->ar_size[i] - '0');
	return i ? size : -1;
}

static void read_name(const struct archive *a, const struct ar_hdr *header, char *name, size_t room)
{
	const char *from = header->ar_name, *end;
	size_t len = sizeof(header->ar_name);

	if (from[0] == '/' && from[1] >= '0' && from[1] <= '9') {
		char digits[sizeof(header->ar_name) + 1] = {0};
		size_t off;

		memcpy(digits, from + 1, len - 1);
		off = strtoul(digits, NULL, 10);
		from = off < a->names_size ? a->names + off : "";
		len = off < a->names_size ? a->names_size - off : 0;
	}
	end = memchr(from, '/', len);
	if (end)
		len = (size_t)(end - from);
	snprintf(name, room, "%.*s", (int)(len < 255 ? len : 255), from);
}

static int put_member(struct archive *a, const struct ar_hdr *header, const uint8_t *data,
		      size_t size, struct me_bytes *out, struct mp_err *err)
{
	struct ar_hdr changed = *header;
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%-10zu", size);

	if (n > (int)sizeof(changed.ar_size))
		return mp_err_set(err, EFBIG, "a member would be too large");
	memcpy(changed.ar_size, digits, sizeof(changed.ar_size));
	if (mp_grow(a->members, a->cap, a->nr + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	a->members[a->nr++] =
		(struct member){(uint64_t)((const uint8_t *)header - a->bytes), out->size};
	me_bytes_put(out, &changed, sizeof(changed));
	me_bytes_put(out, data, size);
	if (size % 2)
		me_bytes_u8(out, '\n');
	return 0;
}

static int rewrite_member(struct archive *a, const struct ar_hdr *header, size_t size,
			  const struct me_object_plan *plan, struct me_object_report *report,
			  struct me_bytes *out, struct mp_err *err)
{
	const uint8_t *data = (const uint8_t *)(header + 1);
	struct me_bytes new = {0};
	struct mp_err why = {""};
	int rc;

	read_name(a, header, report->member, sizeof(report->member));
	report->nr_members++;
	rc = mp_relobj_is(data, size) ? me_object_rewrite(data, size, plan, report, &new, &why)
				      : -ENODATA;
	if (!rc) {
		rc = put_member(a, header, new.data, new.size, out, err);
	} else if (rc == -ENOMEM) {
		*err = why;
	} else {
		report->nr_members_same++;
		rc = rc != -ENODATA && me_object_leave(report, NULL, why.msg, false)
			     ? mp_err_set(err, ENOMEM, "out of memory")
			     : put_member(a, header, data, size, out, err);
	}
	me_bytes_fini(&new);
	return rc;
}

static uint32_t read_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The index names members by their offsets in the archive. */
static int fix_index(const struct archive *a, struct me_bytes *out, struct mp_err *err)
{
	uint8_t *index = out->data + a->index_off;
	uint32_t nr = a->index_size >= 4 ? read_be32(index) : 0;

	if (nr > (a->index_size - 4) / 4)
		return mp_err_set(err, EBADMSG, "the archive's symbol index is damaged");
	for (uint32_t i = 0; i < nr; i++) {
		uint8_t *at = index + 4 + 4 * (size_t)i;
		uint32_t old = read_be32(at);
		uint32_t low = mp_search(mid, 0, a->nr, a->members[mid].old_off < old);

		if (low == a->nr || a->members[low].old_off != old)
			return mp_err_set(err, EBADMSG, "the archive's symbol index is damaged");
		if (a->members[low].new_off > UINT32_MAX)
			return mp_err_set(err, EFBIG, "the archive would be too large");
		for (int k = 0; k < 4; k++)
			at[k] = (uint8_t)(a->members[low].new_off >> (24 - 8 * k));
	}
	return 0;
}

static int next_member(struct archive *a, uint64_t *off, const struct me_object_plan *plan,
		       struct me_object_report *report, struct me_bytes *out, struct mp_err *err)
{
	const struct ar_hdr *header = (const struct ar_hdr *)(a->bytes + *off);
	int64_t size;
	int rc;

	if (a->size - *off < sizeof(*header) || memcmp(header->ar_fmag, ARFMAG, 2))
		return mp_err_set(err, EBADMSG, "a member's header is damaged");
	size = read_size(header);
	if (size < 0 || (uint64_t)size > a->size - *off - sizeof(*header))
		return mp_err_set(err, EBADMSG, "a member is cut");
	if (!memcmp(header->ar_name, "#1/", 3) || !memcmp(header->ar_name, "/SYM64/", 7))
		return mp_err_set(err, EOPNOTSUPP, "the archive's format is not GNU's");
	if (!memcmp(header->ar_name, "/ ", 2)) {
		a->index_off = out->size + sizeof(*header);
		a->index_size = (uint64_t)size;
	} else if (!memcmp(header->ar_name, "// ", 3)) {
		a->names = (const char *)(header + 1);
		a->names_size = (size_t)size;
	} else {
		rc = rewrite_member(a, header, (size_t)size, plan, report, out, err);
		goto out;
	}
	rc = put_member(a, header, (const uint8_t *)(header + 1), (size_t)size, out, err);
out:
	*off += sizeof(*header) + (uint64_t)size + (size & 1);
	return rc;
}

int me_object_rewrite_archive(const uint8_t *bytes, size_t size, const struct me_object_plan *plan,
			      struct me_object_report *report, struct me_bytes *out,
			      struct mp_err *err)
{
	struct archive a = {.bytes = bytes, .size = size};
	uint64_t off = SARMAG;
	int rc = 0;

	me_bytes_put(out, bytes, SARMAG);
	while (!rc && off < size)
		rc = next_member(&a, &off, plan, report, out, err);
	if (!rc && out->failed)
		rc = mp_err_set(err, ENOMEM, "out of memory");
	if (!rc && a.index_off)
		rc = fix_index(&a, out, err);
	if (!rc && report->nr_members == report->nr_members_same)
		rc = mp_err_set(err, ENODATA, "no member of it was rewritten");
	free(a.members);
	return rc;
}
