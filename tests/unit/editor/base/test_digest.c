// SPDX-License-Identifier: Apache-2.0
/* test_digest - the digest of a copy is that of its bytes. */
#include <check.h>
#include <fcntl.h>

#include "editor/base/digest.h"
#include "tests/unit/suite.h"

enum {
	SIZE = 600001, /* more than two of its chunks, and a remainder */
};

static int temporary(void)
{
	char path[] = "/tmp/test_digest.XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	unlink(path);
	return fd;
}

TEST(digest_of_a_copy_is_that_of_the_bytes)
{
	uint8_t *bytes = malloc(SIZE), *copy = malloc(SIZE);
	struct me_digest memory, file, again;
	int in = temporary(), to = temporary();
	uint64_t size;

	for (int i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 256);
	ck_assert_int_eq(write(in, bytes, SIZE), SIZE);
	me_digest_memory(bytes, SIZE, &memory);
	ck_assert_int_eq(me_digest_copy(in, to, &file, &size), 0);
	ck_assert_uint_eq(size, SIZE);
	ck_assert(me_digest_equal(&memory, &file));
	ck_assert_int_eq(pread(to, copy, SIZE, 0), SIZE);
	ck_assert_mem_eq(copy, bytes, SIZE);
	/* Always reads from the start, wherever the file position is. */
	ck_assert_int_eq(me_digest_copy(in, -1, &again, NULL), 0);
	ck_assert(me_digest_equal(&again, &file));
	bytes[SIZE - 1] ^= 1;
	me_digest_memory(bytes, SIZE, &memory);
	ck_assert(!me_digest_equal(&memory, &file));
	free(bytes);
	free(copy);
	close(in);
	close(to);
}

/* A later version of Morph must find a backup made today. */
TEST(digest_stays_what_it_is)
{
	struct me_digest d;

	me_digest_memory("", 0, &d);
	ck_assert_str_eq(d.hex, "99aa06d3014798d86001c324468d497f");
	me_digest_memory("Morph", 5, &d);
	ck_assert_uint_eq(strlen(d.hex), 32);
}

TEST(digest_tells_of_errors)
{
	struct me_digest d;
	int in = temporary(), closed = temporary(), full = open("/dev/full", O_WRONLY);

	ck_assert_int_eq(write(in, "x", 1), 1);
	close(closed);
	ck_assert_int_eq(me_digest_copy(closed, -1, &d, NULL), -EBADF);
	ck_assert_int_eq(me_digest_copy(in, full, &d, NULL), -ENOSPC);
	close(in);
	close(full);
}
