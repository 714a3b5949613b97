// SPDX-License-Identifier: Apache-2.0
/* import_brstack - parses entries of perf's branch stacks; see import_brstack.h. */
#include "daemon/import/import_brstack.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LEN_MAX 4100

static bool is_flag(char c)
{
	return c == 'M' || c == 'P' || c == '-';
}

/* Skips "(FILE)". A path may contain anything, so look for what must follow it. */
static const char *skip_file(const char *p, bool is_to)
{
	for (const char *end = p + strnlen(p, PATH_LEN_MAX); p < end; p++)
		if (p[0] == ')' && p[1] == '/' &&
		    (is_to ? is_flag(p[2]) && p[3] == '/' : p[2] == '0' && p[3] == 'x'))
			return p + 1;
	return NULL;
}

/* Reads "0x401010/" or "0x401010(/a/file)/". */
static const char *read_address(const char *p, bool is_to, uint64_t *address)
{
	char *end;

	if (p[0] != '0' || p[1] != 'x' || !isxdigit((unsigned char)p[2]))
		return NULL;
	errno = 0;
	*address = strtoull(p + 2, &end, 16);
	if (errno)
		return NULL;
	p = *end == '(' ? skip_file(end, is_to) : end;
	return p && *p == '/' ? p + 1 : NULL;
}

/*
 * After the addresses, "M/" means mispredicted, "P/" predicted and "-/" unknown. Ignores the
 * other fields.
 */
static const char *read_entry(const char *p, struct md_brstack_entry *entry)
{
	p = read_address(p, false, &entry->from);
	if (!p)
		return NULL;
	p = read_address(p, true, &entry->to);
	if (!p || !is_flag(*p))
		return NULL;
	entry->mispredicted = *p == 'M';
	return p + strcspn(p, " \t");
}

const char *md_brstack_next(const char *p, struct md_brstack_entry *entry)
{
	const char *end;

	for (; (p = strstr(p, "0x")); p += 2) {
		end = read_entry(p, entry);
		if (end)
			return end;
	}
	return NULL;
}
