// SPDX-License-Identifier: Apache-2.0
/* test_elf_pages - copies of mapped files: which pages changed, and that none loses its bytes. */
#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "libprof/elf/elf.h"
#include "tests/unit/suite.h"

/* This program, followed by as many bytes as several pieces of reading have. */
#define MORE (2 * MP_ELF_READ_AT_ONCE + 12345)

static char path[64];
static struct mp_elf *elf;
static uint8_t *copy;
static uint64_t *changed;

static void setup(void)
{
	char command[256];

	strcpy(path, "/tmp/test_elf_pages.XXXXXX");
	close(mkstemp(path));
	snprintf(command, sizeof(command), "cat /proc/%d/exe > %s && head -c %u /dev/urandom >> %s",
		 (int)getpid(), path, MORE, path);
	ck_assert_int_eq(system(command), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	copy = mp_elf_copy(elf, elf->size);
	changed = calloc(elf->size / MP_ELF_PAGE / 64 + 1, sizeof(*changed));
	ck_assert(copy && changed);
}

static void teardown(void)
{
	munmap(copy, elf->size);
	free(changed);
	mp_elf_close(elf);
	unlink(path);
}

static bool is_changed(size_t off)
{
	size_t page = off / MP_ELF_PAGE;

	return changed[page / 64] >> (page % 64) & 1;
}

FIXTURE(setup, teardown);

TEST(pages_that_differ_are_found_and_keep_their_bytes)
{
	const size_t places[] = {0, 5000, MP_ELF_READ_AT_ONCE - 1, MP_ELF_READ_AT_ONCE,
				 elf->size - 1};
	const size_t nr_places = sizeof(places) / sizeof(places[0]);
	AUTO_FREE uint8_t *want = malloc(elf->size);
	size_t nr = 0;

	ck_assert_ptr_nonnull(want);
	memcpy(want, elf->data, elf->size);
	for (size_t i = 0; i < nr_places; i++)
		copy[places[i]] = want[places[i]] ^= 0xff;
	/* A page that was written, but has the same bytes. */
	copy[3 * MP_ELF_PAGE] ^= 1;
	copy[3 * MP_ELF_PAGE] ^= 1;
	mp_elf_find_changed(elf, copy, elf->size, changed);
	for (size_t i = 0; i < nr_places; i++)
		ck_assert_msg(is_changed(places[i]), "%zu", places[i]);
	for (size_t off = 0; off < elf->size; off += MP_ELF_PAGE)
		nr += is_changed(off);
	ck_assert_uint_eq(nr, nr_places);
	ck_assert_int_eq(memcmp(copy, want, elf->size), 0);
}

/* Return: pages of this process that are mapped from files, as the kernel counts them. */
static size_t file_pages(void)
{
	unsigned long long size, resident, shared;
	FILE *statm = fopen("/proc/self/statm", "re");

	ck_assert_ptr_nonnull(statm);
	ck_assert_int_eq(fscanf(statm, "%llu %llu %llu", &size, &resident, &shared), 3);
	fclose(statm);
	return shared;
}

static uint64_t sum(const uint8_t *bytes, size_t size)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

TEST(dropped_pages_are_no_memory_and_can_be_read_again)
{
	uint64_t before = sum(elf->data, elf->size);
	size_t read = file_pages();

	mp_elf_drop_bytes(elf, elf->data + 100, MP_ELF_READ_AT_ONCE);
	ck_assert_uint_le(file_pages() + MP_ELF_READ_AT_ONCE / MP_ELF_PAGE / 2, read);
	ck_assert_uint_eq(sum(elf->data, elf->size), before);
	mp_elf_drop_pages(elf);
	ck_assert_uint_le(file_pages() + elf->size / MP_ELF_PAGE / 2, read);
	ck_assert_uint_eq(sum(elf->data, elf->size), before);
}

TEST(bytes_in_memory_are_never_dropped)
{
	uint8_t *bytes = malloc(elf->size), *own;
	struct mp_elf *memory;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, elf->data, elf->size);
	ck_assert(!mp_elf_open_memory("memory", bytes, elf->size, MP_ELF_ALL, &memory, &err));
	own = mp_elf_copy(memory, elf->size);
	ck_assert_ptr_nonnull(own);
	mp_elf_find_changed(memory, own, elf->size, changed);
	mp_elf_drop_bytes(memory, memory->data, elf->size);
	mp_elf_drop_pages(memory);
	ck_assert_int_eq(memcmp(own, elf->data, elf->size), 0);
	ck_assert_int_eq(memcmp(bytes, elf->data, elf->size), 0);
	munmap(own, elf->size);
	mp_elf_close(memory);
	free(bytes);
}
