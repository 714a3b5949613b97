// SPDX-License-Identifier: Apache-2.0
/*
 * test_version - what the pages of a process are, and errors that are told as what they are. The process is this one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/live/version.h"
#include "tests/unit/suite.h"

static bool no_memory;

/* The one that arrays grow by. */
void *reallocarray(void *array, size_t nr, size_t size)
{
	if (no_memory) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(array, nr * size);
}

static uint8_t now[MD_LIVE_PAGE] __attribute__((aligned(MD_LIVE_PAGE)));
static uint8_t old_bytes[MD_LIVE_PAGE], new_bytes[MD_LIVE_PAGE];
static struct md_live_page page = {.vaddr = MD_LIVE_PAGE};

/* A version that changes one byte of one page of this process. */
static struct md_version a_version(void)
{
	struct md_version v = {.pid = getpid(),
			       .bias = (uint64_t)(uintptr_t)now - MD_LIVE_PAGE,
			       .original_path = (char *)"/bin/prog",
			       .output_fd = -1};

	memset(old_bytes, 0x90, sizeof(old_bytes));
	memset(new_bytes, 0x90, sizeof(new_bytes));
	new_bytes[100] = 0xe9;
	memcpy(now, old_bytes, sizeof(now));
	v.changes.pages = &page;
	v.changes.nr_pages = 1;
	v.changes.old_bytes = old_bytes;
	v.changes.new_bytes = new_bytes;
	return v;
}

TEST(version_finds_a_breakpoint_of_somebody_else)
{
	struct md_version v = a_version();
	const struct md_versions none = {0};

	now[200] = MD_BREAKPOINT;
	ck_assert_int_eq(md_version_pages(&v, &none, NULL, &err), 0);
	ck_assert_uint_eq(v.pages.nr[MD_PAGE_OLD], 1);
	ck_assert_uint_eq(v.nr_breakpoints, 1);
	ck_assert_uint_eq(v.breakpoints[0], MD_LIVE_PAGE + 200);
	free(v.breakpoints);
}

TEST(version_tells_out_of_memory_as_that)
{
	struct md_version v = a_version();
	const struct md_versions none = {0};

	now[200] = MD_BREAKPOINT;
	no_memory = true;
	ck_assert_int_eq(md_version_pages(&v, &none, NULL, &err), -ENOMEM);
	no_memory = false;
	ck_assert_ptr_nonnull(strstr(err.msg, "out of memory"));
	ck_assert_ptr_null(v.breakpoints);
}

TEST(version_tells_code_that_cannot_be_read)
{
	struct md_version v = a_version();
	const struct md_versions none = {0};

	v.bias = 0; /* nothing is mapped at the first pages */
	ck_assert_int_eq(md_version_pages(&v, &none, NULL, &err), -EIO);
	ck_assert_ptr_nonnull(strstr(err.msg, "the code of /bin/prog cannot be read"));
}
