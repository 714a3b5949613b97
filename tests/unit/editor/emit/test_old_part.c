// SPDX-License-Identifier: Apache-2.0
/* test_old_part - the hash of a changed copy is that of its bytes, although few of them are read
 * from the copy. */
#include <check.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "editor/emit/old_part.h"
#include "tests/unit/suite.h"

#define MORE (2 * MP_ELF_READ_AT_ONCE + 4321)

static char path[64];
static struct mp_elf *elf;
static uint8_t *copy;

static void setup(void)
{
	char command[256];

	strcpy(path, "/tmp/test_old_part.XXXXXX");
	close(mkstemp(path));
	snprintf(command, sizeof(command), "cat /proc/%d/exe > %s && head -c %u /dev/urandom >> %s",
		 (int)getpid(), path, MORE, path);
	ck_assert_int_eq(system(command), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	copy = mp_elf_copy(elf, elf->size);
	ck_assert_ptr_nonnull(copy);
}

static void teardown(void)
{
	munmap(copy, elf->size);
	mp_elf_close(elf);
	unlink(path);
}

FIXTURE(setup, teardown);

TEST(hash_is_that_of_all_bytes)
{
	size_t size = elf->size - 100;
	AUTO(me_old_part_fini) struct me_old_part part = {0};
	uint64_t hash;

	srand(1);
	for (int i = 0; i < 300; i++)
		copy[(size_t)rand() * 7 % size] ^= (uint8_t)(rand() | 1);
	ck_assert_int_eq(me_old_part_init(&part, elf, copy, size), 0);
	for (uint64_t seed = 0; seed < 3; seed++) {
		ck_assert_int_eq(me_old_part_hash(&part, seed * 99, &hash), 0);
		ck_assert_uint_eq(hash, XXH3_64bits_withSeed(copy, size, seed * 99));
		/* The next hash is of this change as well. */
		copy[MP_ELF_READ_AT_ONCE - 3] += 1;
		memset(copy + MP_ELF_READ_AT_ONCE - 2, (int)seed + 1, 20);
		me_old_part_note_change(&part, MP_ELF_READ_AT_ONCE - 3, 21);
	}
}

TEST(hash_of_an_unchanged_copy_is_that_of_the_file)
{
	AUTO(me_old_part_fini) struct me_old_part part = {0};
	uint64_t hash;

	ck_assert_int_eq(me_old_part_init(&part, elf, copy, elf->size), 0);
	ck_assert_int_eq(me_old_part_hash(&part, 5, &hash), 0);
	ck_assert_uint_eq(hash, XXH3_64bits_withSeed(elf->data, elf->size, 5));
}
