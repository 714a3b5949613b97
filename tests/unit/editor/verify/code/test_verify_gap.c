// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_gap - verify treats bytes outside of functions as code if control can reach them,
 * by its own analysis; otherwise the same bytes are data.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

#define GAP "gcc -nostdlib -pie -Wl,-e,start tests/data/gap.S"

/* the code of "stays" */
static const uint8_t stays[] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0x0f, 0x05, 0xc3, 0xe8};

/* Writes a jump over the rest of "stays". */
static void put_jump(uint8_t *bytes, size_t size, uint8_t over)
{
	uint8_t *p = memmem(bytes, size, stays, sizeof(stays));
	const uint8_t jump[] = {0xe9, over, 0, 0, 0};

	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_null(memmem(p + 1, size - (size_t)(p + 1 - bytes), stays, sizeof(stays)));
	memcpy(p, jump, sizeof(jump));
}

TEST_EACH(verify_believes_what_control_comes_to, 2)
{
	/* To the call; to the return before it. */
	static const uint8_t over[] = {3, 2};
	struct mp_elf *original, *output;
	struct mp_err err = {""};
	uint8_t *bytes;
	struct pair p;
	int rc;

	pair_build_stock(&p, GAP, 0);
	ck_assert_uint_ge(p.report.nr_pieces, 3);
	bytes = malloc(p.original->size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, p.original->data, p.original->size);
	put_jump(bytes, p.original->size, over[_i]);
	put_jump(p.bytes, p.size, over[_i]);
	ck_assert_int_eq(mp_elf_open_memory("original", bytes, p.original->size, MP_ELF_ALL,
					    &original, &err),
			 0);
	ck_assert_int_eq(mp_elf_open_memory("output", p.bytes, p.size, MP_ELF_ALL, &output, &err),
			 0);
	/* The map names the original's id. */
	original->id = p.original->id;
	rc = me_verify(original, output, NULL, &err);
	if (_i) {
		ck_assert_msg(rc == 0, "%s", err.msg);
	} else {
		ck_assert_int_eq(rc, -EBADMSG);
		ck_assert_msg(strstr(err.msg, "not understood") != NULL, "%s", err.msg);
	}
	mp_elf_close(original);
	mp_elf_close(output);
	free(bytes);
	pair_free(&p);
}
