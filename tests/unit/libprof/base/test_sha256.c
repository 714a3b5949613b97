// SPDX-License-Identifier: Apache-2.0
/* test_sha256 - the examples of FIPS 180-4, and lengths about the end of a block. */
#include "libprof/base/sha256.h"

#include "libprof/base/machine_id.h"
#include "tests/unit/suite.h"

static const char *hex(const void *data, size_t size)
{
	static char out[2 * MP_SHA256_BYTES + 1];
	uint8_t hash[MP_SHA256_BYTES], plain[MP_SHA256_BYTES];

	mp_sha256(data, size, hash);
	mp_sha256_plain(data, size, plain);
	ck_assert_mem_eq(hash, plain, sizeof(hash));
	for (size_t i = 0; i < sizeof(hash); i++)
		snprintf(out + 2 * i, 3, "%02x", hash[i]);
	return out;
}

TEST(sha256_of_the_standards_examples)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	ck_assert_str_eq(hex("", 0),
			 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	ck_assert_str_eq(hex("abc", 3),
			 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	ck_assert_str_eq(hex(two, strlen(two)),
			 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(sha256_of_a_million_bytes)
{
	AUTO_FREE char *data = malloc(1000000);

	ck_assert_ptr_nonnull(data);
	memset(data, 'a', 1000000);
	ck_assert_str_eq(hex(data, 1000000),
			 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Both ways, with the processor's instructions and without, agree about every length of a last block. */
TEST(sha256_of_all_lengths)
{
	char data[300];

	for (size_t i = 0; i < sizeof(data); i++) {
		data[i] = (char)(i * 37 + i / 64);
		ck_assert_uint_eq(strlen(hex(data, i)), 2 * MP_SHA256_BYTES);
	}
}

TEST(machine_without_an_id_has_zeros)
{
	static const uint8_t none[MP_MACHINE_BYTES];
	uint8_t id[MP_MACHINE_BYTES], again[MP_MACHINE_BYTES];

	ck_assert_int_lt(mp_machine_id_read("/no/such/file", id), 0);
	ck_assert_mem_eq(id, none, sizeof(id));
	ck_assert_int_eq(mp_machine_id_read("/dev/null", id), 0);
	ck_assert_mem_ne(id, none, sizeof(id));
	ck_assert_int_eq(mp_machine_id_read("/proc/version", again), 0);
	ck_assert_mem_ne(id, again, sizeof(id));
}
