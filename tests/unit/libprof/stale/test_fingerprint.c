// SPDX-License-Identifier: Apache-2.0
/* test_fingerprint - what the hashes depend on; and encoding: read back identically, or refused. */
#include "libprof/stale/fingerprint.h"

#include "tests/unit/program.h"

static void setup(void)
{
	program_build("-w -O2 -fPIE -pie", "tests/data/switches.c");
}

/* ---- instructions --------------------------------------------------------------------------- */

static struct mp_print_insn hash(const char *bytes, size_t size, uint64_t low, uint64_t high)
{
	struct mp_insn insn;

	ck_assert_int_eq(mp_insn_decode((const uint8_t *)bytes, size, 0x401000, &insn), 0);
	ck_assert_uint_eq(insn.len, size);
	return mp_print_insn((const uint8_t *)bytes, &insn, low, high);
}

#define HASH(bytes) hash(bytes, sizeof(bytes) - 1, 0, 0)

static void expect(struct mp_print_insn a, struct mp_print_insn b, bool full, bool loose)
{
	ck_assert(a.hashed && b.hashed);
	ck_assert_int_eq(a.full == b.full, full);
	ck_assert_int_eq(a.loose == b.loose, loose);
}

TEST(fingerprint_leaves_addresses_out)
{
	/* mov 0x10(%rip), %rax; mov 0x2000(%rip), %rax */
	expect(HASH("\x48\x8b\x05\x10\0\0\0"), HASH("\x48\x8b\x05\0\x20\0\0"), true, true);
	/* call; call */
	expect(HASH("\xe8\x10\0\0\0"), HASH("\xe8\0\x30\0\0"), true, true);
	/* jz near and short */
	expect(HASH("\x0f\x84\x10\x20\0\0"), HASH("\x74\x05"), true, true);
	/* mov $0x404010, %edi: an address in a file that contains it, a number in others */
	expect(hash("\xbf\x10\x40\x40\0", 5, 0x400000, 0x500000),
	       hash("\xbf\x20\x41\x40\0", 5, 0x400000, 0x500000), true, true);
	expect(HASH("\xbf\x10\x40\x40\0"), HASH("\xbf\x20\x41\x40\0"), false, true);
	/* mov 0x404010(,%rax,8), %rax */
	expect(hash("\x48\x8b\x04\xc5\x10\x40\x40\0", 8, 0x400000, 0x500000),
	       hash("\x48\x8b\x04\xc5\x20\x41\x40\0", 8, 0x400000, 0x500000), true, true);
}

TEST(fingerprint_knows_registers_and_operations)
{
	/* add %edi, %eax; add %esi, %ecx */
	expect(HASH("\x01\xf8"), HASH("\x01\xf1"), false, true);
	/* mov 8(%rsp), %eax; mov 16(%rsp), %eax */
	expect(HASH("\x8b\x44\x24\x08"), HASH("\x8b\x44\x24\x10"), false, true);
	/* add $1, %eax; add $1000, %eax; sub $1, %eax */
	expect(HASH("\x83\xc0\x01"), HASH("\x81\xc0\xe8\x03\0\0"), false, true);
	expect(HASH("\x83\xc0\x01"), HASH("\x83\xe8\x01"), false, false);
	/* push %rbx; push %r12 */
	expect(HASH("\x53"), HASH("\x41\x54"), false, true);
	/* jz, jnz: blocks in another order invert conditions */
	expect(HASH("\x74\x05"), HASH("\x75\x05"), false, true);
	/* vaddps, vmulps */
	expect(HASH("\xc5\xf8\x58\xc1"), HASH("\xc5\xf8\x59\xc1"), false, false);
	/* jmp, no-ops, endbr64 */
	ck_assert(!HASH("\xeb\x05").hashed);
	ck_assert(!HASH("\x0f\x1f\x40\x00").hashed);
	ck_assert(!HASH("\xf3\x0f\x1e\xfa").hashed);
}

/* ---- whole files ---------------------------------------------------------------------------- */

static void expect_same(const struct mp_fingerprint *a, const struct mp_fingerprint *b)
{
	ck_assert_uint_eq(a->nr_funcs, b->nr_funcs);
	ck_assert_uint_eq(a->nr_blocks, b->nr_blocks);
	ck_assert_uint_eq(a->nr_edges, b->nr_edges);
	ck_assert_uint_eq(a->nr_calls, b->nr_calls);
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		const struct mp_print_func *x = &a->funcs[i], *y = &b->funcs[i];

		ck_assert_uint_eq(x->vaddr, y->vaddr);
		ck_assert_uint_eq(x->name, y->name);
		ck_assert_uint_eq(x->full, y->full);
		ck_assert_uint_eq(x->loose, y->loose);
		ck_assert_uint_eq(x->nr_blocks, y->nr_blocks);
		ck_assert_uint_eq(x->first_block, y->first_block);
		ck_assert_uint_eq(x->nr_kept, y->nr_kept);
		ck_assert_uint_eq(x->entry, y->entry);
	}
	for (uint32_t i = 0; i < a->nr_blocks; i++) {
		const struct mp_print_block *x = &a->blocks[i], *y = &b->blocks[i];

		ck_assert_uint_eq(x->vaddr, y->vaddr);
		ck_assert_uint_eq(x->size, y->size);
		ck_assert_uint_eq(x->nr_insns, y->nr_insns);
		ck_assert_uint_eq(x->term_off, y->term_off);
		ck_assert_uint_eq(x->full, y->full);
		ck_assert_uint_eq(x->loose, y->loose);
		ck_assert_uint_eq(x->first_edge, y->first_edge);
		ck_assert_uint_eq(x->nr_edges, y->nr_edges);
		ck_assert_uint_eq(x->nr_calls, y->nr_calls);
	}
	for (uint32_t i = 0; i < a->nr_edges; i++) {
		ck_assert_uint_eq(a->edges[i].to, b->edges[i].to);
		ck_assert_uint_eq(a->edges[i].kind, b->edges[i].kind);
	}
	for (uint32_t i = 0; i < a->nr_calls; i++) {
		ck_assert_uint_eq(a->calls[i].off, b->calls[i].off);
		ck_assert_uint_eq(a->calls[i].callee, b->calls[i].callee);
	}
}

/* Encoded and decoded it is the same; truncated or extended, it is refused. */
static void expect_round_trip(const struct mp_fingerprint *print)
{
	struct mp_fingerprint again;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_fingerprint_encode(print, &bytes, &size, &err), 0);
	ck_assert_msg(!mp_fingerprint_decode(bytes, size, &again, &err), "%s", err.msg);
	expect_same(print, &again);
	mp_fingerprint_fini(&again);
	for (size_t cut = 0; cut < size; cut++) {
		AUTO_FREE uint8_t *exact = malloc(cut + 1);

		memcpy(exact, bytes, cut);
		ck_assert_int_eq(mp_fingerprint_decode(exact, cut, &again, &err), -EBADMSG);
		ck_assert_ptr_null(again.funcs);
	}
	bytes = realloc(bytes, size + 1);
	bytes[size] = 0;
	ck_assert_int_eq(mp_fingerprint_decode(bytes, size + 1, &again, &err), -EBADMSG);
}

FIXTURE(setup, program_free);

TEST(fingerprint_comes_back_as_it_was)
{
	struct mp_fingerprint all, some;
	struct mp_ip_count count;
	uint32_t f = 0;

	ck_assert_int_eq(mp_fingerprint_make(cfg, NULL, 0, NULL, 0, &all, &err), 0);
	ck_assert_uint_eq(all.nr_funcs, cfg->nr_funcs);
	ck_assert_uint_eq(all.nr_blocks, cfg->nr_blocks);
	ck_assert_uint_le(all.nr_edges, cfg->nr_edges);
	ck_assert_uint_gt(all.nr_calls, 0);
	expect_round_trip(&all);
	/* Only one function has a sample: for the others only hashes are kept. */
	while (cfg->funcs[f].nr_blocks < 5)
		f++;
	count = (struct mp_ip_count){cfg->funcs[f].vaddr, 1};
	ck_assert_int_eq(mp_fingerprint_make(cfg, &count, 1, NULL, 0, &some, &err), 0);
	ck_assert_uint_eq(some.nr_funcs, cfg->nr_funcs);
	ck_assert_uint_eq(some.nr_blocks, cfg->funcs[f].nr_blocks);
	for (uint32_t i = 0; i < some.nr_funcs; i++) {
		ck_assert_uint_eq(some.funcs[i].nr_kept, i == f ? cfg->funcs[f].nr_blocks : 0);
		ck_assert_uint_eq(some.funcs[i].full, all.funcs[i].full);
		ck_assert_uint_eq(some.funcs[i].name, all.funcs[i].name);
	}
	expect_round_trip(&some);
	mp_fingerprint_fini(&some);
	mp_fingerprint_fini(&all);
}

TEST(fingerprint_refuses_damaged_bytes_or_reads_them)
{
	struct mp_fingerprint print;
	uint8_t *bytes;
	size_t size, nr_refused = 0;

	ck_assert_int_eq(mp_fingerprint_make(cfg, NULL, 0, NULL, 0, &print, &err), 0);
	ck_assert_int_eq(mp_fingerprint_encode(&print, &bytes, &size, &err), 0);
	mp_fingerprint_fini(&print);
	for (size_t at = 0; at < size; at++) {
		uint8_t before = bytes[at];

		bytes[at] ^= (uint8_t)(1 + at * 37);
		if (mp_fingerprint_decode(bytes, size, &print, &err)) {
			nr_refused++;
		} else {
			/* Accepted bytes never refer outside of the arrays. */
			for (uint32_t f = 0; f < print.nr_funcs; f++)
				ck_assert_uint_le((uint64_t)print.funcs[f].first_block +
							  print.funcs[f].nr_kept,
						  print.nr_blocks);
			mp_fingerprint_fini(&print);
		}
		bytes[at] = before;
	}
	ck_assert_uint_gt(nr_refused, 0);
	free(bytes);
}
