// SPDX-License-Identifier: Apache-2.0
/* test_eh - a CIE is read if all unwinders find the same in its augmentation. */
#include "tests/unit/suite.h"

#include "libprof/elf/eh.h"

static const struct {
	const char *letters;
	uint8_t data[8];
	uint8_t size;
	int want;
} cies[] = {
	{"zR", {0x1b}, 1, 1},
	{"zRS", {0x1b}, 1, 1},
	{"zPLR", {0x1b, 4, 0, 0, 0, 0x1b, 0x1b}, 7, 1},
	{"zSR",
	 {0x1b},
	 1,
	 -EOPNOTSUPP}, /* libgcc finds no encoding behind S when it searches the table */
	{"zRR", {0x1b, 0x03}, 2, -EOPNOTSUPP},
	{"zRB", {0x1b}, 1, -EOPNOTSUPP},
	{"zBR", {0x1b}, 1, -EOPNOTSUPP},
	{"zRL", {0x1b, 0x1b}, 2, -EOPNOTSUPP},
	{"eh", {0}, 8, -EOPNOTSUPP},
};

TEST_EACH(eh_reads_augmentations_that_have_one_meaning, sizeof(cies) / sizeof(cies[0]))
{
	uint8_t bytes[64] = {0, 0, 0, 0, 0, 0, 0, 0, 1}, *p = bytes + 9;
	struct mp_cursor first, cur;
	struct mp_eh_cie cie = {0};
	struct mp_eh_fde fde;

	memcpy(p, cies[_i].letters, strlen(cies[_i].letters) + 1);
	p += strlen(cies[_i].letters) + 1;
	*p++ = 1;
	*p++ = 0x78;
	*p++ = 16;
	*p++ = cies[_i].size;
	memcpy(p, cies[_i].data, cies[_i].size);
	p += cies[_i].size;
	bytes[0] = (uint8_t)(p - bytes - 4);
	first = cur = (struct mp_cursor){.p = bytes, .end = p, .vaddr = 0x1000};
	ck_assert_int_eq(mp_eh_next(&cur, &first, &cie, &fde), cies[_i].want);
}
