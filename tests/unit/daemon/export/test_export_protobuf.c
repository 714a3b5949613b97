// SPDX-License-Identifier: Apache-2.0
/*
 * test_export_protobuf - messages with the bytes that the specification gives, and a gzip
 * stream that zlib can read.
 */
#include <zlib.h>

#include "daemon/export/protobuf.h"
#include "tests/unit/suite.h"

static struct md_pb pb, inner;

static void teardown(void)
{
	md_pb_fini(&pb);
	md_pb_fini(&inner);
}

static void is(const struct md_pb *have, const char *bytes, size_t nr)
{
	ck_assert(!have->failed);
	ck_assert_uint_eq(have->nr, nr);
	if (nr)
		ck_assert_mem_eq(have->bytes, bytes, nr);
}

FIXTURE(NULL, teardown);

TEST(pb_writes_integers_as_varints)
{
	md_pb_uint(&pb, 1, 150); /* the specification's example */
	is(&pb, "\x08\x96\x01", 3);
	md_pb_reset(&pb);
	md_pb_uint(&pb, 2, 127);
	md_pb_uint(&pb, 16, UINT64_MAX);
	is(&pb, "\x10\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14);
}

TEST(pb_leaves_out_zero_but_not_an_empty_string)
{
	md_pb_uint(&pb, 1, 0);
	is(&pb, "", 0);
	md_pb_bytes(&pb, 6, "", 0);
	is(&pb, "\x32\x00", 2);
}

TEST(pb_nests_messages_and_packs_lists)
{
	const uint64_t values[] = {3, 270, 86942}; /* the specification's example */

	md_pb_packed(&inner, 4, values, 3);
	is(&inner, "\x22\x06\x03\x8e\x02\x9e\xa7\x05", 8);
	md_pb_message(&pb, 3, &inner);
	is(&pb, "\x1a\x08\x22\x06\x03\x8e\x02\x9e\xa7\x05", 10);
	/* In a list, zero is written. */
	md_pb_reset(&pb);
	md_pb_packed(&pb, 1, (const uint64_t[]){0, 1}, 2);
	is(&pb, "\x0a\x02\x00\x01", 4);
}

TEST(pb_grows_with_what_is_put_in)
{
	AUTO_FREE char *text = malloc(100000);

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', 100000);
	md_pb_bytes(&pb, 1, text, 100000);
	ck_assert_uint_eq(pb.nr, 1 + 3 + 100000);
	ck_assert_mem_eq(pb.bytes + 4, text, 100000);
}

TEST(gzip_is_read_back_by_zlib)
{
	char name[] = "/tmp/morph-gzip-XXXXXX";
	int fd = mkstemp(name);
	FILE *out = fdopen(fd, "wb");
	struct md_gzip *gz;
	uint32_t seed = 1, again = 1;
	gzFile in;

	ck_assert_int_eq(md_gzip_open(out, &gz), 0);
	/* Data that compresses badly, so that the output buffer fills several times. */
	for (int i = 0; i < 100000; i++) {
		seed = seed * 1103515245 + 12345;
		ck_assert_int_eq(md_gzip_write(gz, &seed, sizeof(seed)), 0);
	}
	ck_assert_int_eq(md_gzip_finish(gz), 0);
	md_gzip_free(gz);
	ck_assert_int_eq(fclose(out), 0);
	in = gzopen(name, "rb");
	ck_assert_ptr_nonnull(in);
	for (int i = 0; i < 100000; i++) {
		again = again * 1103515245 + 12345;
		ck_assert_int_eq(gzread(in, &seed, sizeof(seed)), sizeof(seed));
		ck_assert_uint_eq(seed, again);
	}
	ck_assert_int_eq(gzread(in, &seed, 1), 0);
	ck_assert_int_eq(gzclose(in), Z_OK);
	remove(name);
}

TEST(gzip_says_when_the_disk_is_full)
{
	FILE *out = fopen("/dev/full", "wb");
	struct md_gzip *gz;

	ck_assert_ptr_nonnull(out);
	setbuf(out, NULL);
	ck_assert_int_eq(md_gzip_open(out, &gz), 0);
	ck_assert_int_eq(md_gzip_write(gz, "x", 1) || md_gzip_finish(gz), 1);
	md_gzip_free(gz);
	md_gzip_free(NULL);
	fclose(out);
}
