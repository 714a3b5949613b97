// SPDX-License-Identifier: Apache-2.0
/* test_lookup - the page that answers for copies, asked as an unwinder asks. */
#include "tests/unit/suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

#include "daemon/live/lookup/lookup.h"

/* As struct dl_find_object of glibc 2.35. */
struct answer {
	unsigned long long flags;
	void *start, *end, *map, *eh_frame;
	unsigned long long reserved[7];
};

typedef int find_fn(void *pc, struct answer *answer);

static struct {
	void *pc;
	int result;
} asked;

static int stub(void *pc, struct answer *answer)
{
	asked.pc = pc;
	*answer = (struct answer){
		5, (void *)0x1000, (void *)0x2000, (void *)0x3000, (void *)0x4000, {0}};
	return asked.result;
}

/* What libc's function jumps through: a pointer to the loader's table. */
static void *table[4] = {NULL, NULL, (void *)stub, NULL};
static void **slot = table;

/* [endbr64] mov slot(%rip), %rax; jmp *16(%rax) */
static void make_function(uint8_t out[MD_LOOKUP_READ], uint64_t ip, bool endbr64, bool near)
{
	static const uint8_t begin[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t *at = out;
	int32_t rel;

	memset(out, 0x90, MD_LOOKUP_READ);
	if (endbr64) {
		memcpy(at, begin, sizeof(begin));
		at += sizeof(begin);
	}
	memcpy(at, "\x48\x8b\x05", 3);
	rel = (int32_t)((int64_t)(uintptr_t)&slot - (int64_t)(ip + (uint64_t)(at - out) + 7));
	memcpy(at + 3, &rel, 4);
	memcpy(at + 7, near ? "\xff\x60\x10" : "\xff\xa0\x10\0\0\0", near ? 3 : 6);
}

/* Return: a page near this program's data. */
static uint8_t *near_page(void)
{
	uint64_t page = (uint64_t)(uintptr_t)&slot & ~UINT64_C(4095);
	void *at = MAP_FAILED;

	while (at == MAP_FAILED) {
		page -= 1 << 20;
		at = mmap((void *)(uintptr_t)page, MD_LOOKUP_PAGE,
			  PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
	return at;
}

TEST_EACH(lookup_answers_for_copies_and_passes_all_else_on, 3)
{
	const struct md_lookup_entry entries[] = {{0x500000, 0x1000, 0x400000, 0x500800},
						  {0x700000, 0x2000, 0x410000, 0x701000}};
	uint8_t function[MD_LOOKUP_READ], *page = near_page();
	uint64_t ip = (uint64_t)(uintptr_t)page + 0x10000;
	struct md_lookup lookup;
	struct answer a;
	find_fn *find;
	int32_t rel;

	make_function(function, ip, _i > 0, _i == 2);
	ck_assert_int_eq(
		md_lookup_make(function, ip, (uint64_t)(uintptr_t)page, entries, 2, &lookup), 0);
	memcpy(page, lookup.page, MD_LOOKUP_PAGE);
	find = (find_fn *)(uintptr_t)page;
	/* The jump, behind the first instruction. */
	ck_assert_uint_eq(lookup.at, ip + (_i ? 4 : 7));
	ck_assert_mem_eq(lookup.old, function + (lookup.at - ip), MD_LOOKUP_PATCH);
	ck_assert_uint_eq(lookup.patch[0], 0xe9);
	memcpy(&rel, lookup.patch + 1, 4);
	ck_assert_uint_eq(lookup.at + 5 + (uint64_t)(int64_t)rel, (uint64_t)(uintptr_t)page);
	/* First and last bytes of segments. */
	for (int i = 0; i < 4; i++) {
		const struct md_lookup_entry *e = &entries[i / 2];
		uint64_t pc = e->start + (i % 2 ? e->size - 1 : 0);

		asked.result = 0;
		ck_assert_int_eq(find((void *)(uintptr_t)pc, &a), 0);
		ck_assert_uint_eq((uintptr_t)asked.pc, e->original);
		ck_assert_uint_eq((uintptr_t)a.start, e->start);
		ck_assert_uint_eq((uintptr_t)a.end, e->start + e->size);
		ck_assert_uint_eq((uintptr_t)a.eh_frame, e->eh_frame_hdr);
		ck_assert_uint_eq((uintptr_t)a.map, 0x3000);
		ck_assert_uint_eq(a.flags, 5);
		/* The original is gone: so are its copies. */
		asked.result = -1;
		ck_assert_int_eq(find((void *)(uintptr_t)pc, &a), -1);
		ck_assert_uint_eq((uintptr_t)a.eh_frame, 0x4000);
	}
	/* Right before and behind them, and elsewhere. */
	for (int i = 0; i < 5; i++) {
		static const uint64_t others[] = {0x4fffff, 0x501000, 0x6fffff, 0x702000, 0};

		asked.result = i - 2;
		ck_assert_int_eq(find((void *)(uintptr_t)others[i], &a), i - 2);
		ck_assert_uint_eq((uintptr_t)asked.pc, others[i]);
		ck_assert_uint_eq((uintptr_t)a.eh_frame, 0x4000);
	}
	/* The page itself has rows. */
	asked.result = 0;
	ck_assert_int_eq(find(page + 1, &a), 0);
	ck_assert_uint_eq((uintptr_t)a.start, (uintptr_t)page);
	ck_assert_uint_eq((uintptr_t)asked.pc, ip);
	munmap(page, MD_LOOKUP_PAGE);
}

TEST(lookup_says_what_it_cannot_do)
{
	struct md_lookup_entry entries[MD_LOOKUP_MAX + 1] = {{0}};
	uint8_t function[MD_LOOKUP_READ], other[MD_LOOKUP_READ];
	uint64_t ip = (uint64_t)(uintptr_t)&slot & ~UINT64_C(4095);
	struct md_lookup lookup;

	/* The second instruction has three bytes, and a jump to the page needs five. */
	make_function(function, ip, false, true);
	ck_assert_int_eq(md_lookup_make(function, ip, ip, entries, 1, &lookup), -EOPNOTSUPP);
	make_function(function, ip, false, false);
	ck_assert_int_eq(md_lookup_make(function, ip, ip, entries, MD_LOOKUP_MAX, &lookup), 0);
	ck_assert_int_eq(md_lookup_make(function, ip, ip, entries, MD_LOOKUP_MAX + 1, &lookup),
			 -E2BIG);
	ck_assert_int_eq(md_lookup_make(function, ip, ip + (UINT64_C(3) << 30), entries, 1,
					&lookup),
			 -ERANGE);
	for (int i = 0; i < 3; i++) {
		static const uint8_t at[] = {0, 2, 8};

		memcpy(other, function, sizeof(other));
		other[at[i]] ^= 0x11;
		ck_assert_int_eq(md_lookup_make(other, ip, ip, entries, 1, &lookup), -EOPNOTSUPP);
	}
}

/* This machine's libc, if it is new enough. */
TEST(lookup_knows_the_function_of_libc)
{
	const uint8_t *function = dlsym(RTLD_DEFAULT, "_dl_find_object");
	uint64_t ip = (uint64_t)(uintptr_t)function;
	struct md_lookup lookup;

	if (!function)
		return;
	ck_assert_int_eq(md_lookup_make(function, ip, (ip & ~UINT64_C(4095)) - (1 << 20), NULL, 0,
					&lookup),
			 0);
}
