// SPDX-License-Identifier: Apache-2.0
// check-all: one bit of each byte of several outputs
/*
 * test_verify_bits - every changed bit of an output must be noticed: of headers, old code and
 * data, copies, unwind tables, map, symbols, names and padding, with and without relocations.
 * Exceptions are on a short list with reasons.
 *
 * By default one bit of each byte is flipped; MORPH_MUTATION=all flips all (make
 * check-mutation).
 */
#include "tests/unit/suite.h"

#include "editor/base/runtime.h"
#include "editor/unwind/lsda.h"
#include "tests/unit/verify_pair.h"

#define LEAVES	"g++ -x c++ -O2 -fnon-call-exceptions -Wl,-z,noseparate-code tests/data/leaf.c"
#define STACKS	"gcc -O2 tests/data/leaf_stack.c"
#define MUTANTS "g++ -O2 -Wl,-z,noseparate-code tests/data/mutants.cc"

/* A class of bits that mean nothing to program, loader and unwinder. */
struct irrelevant {
	const char *why;
	bool (*is_one)(const struct pair *p, uint64_t off, int bit);
};

static uint64_t offset_in(const struct pair *p, const char *name, uint64_t off)
{
	const struct mp_section *sec = mp_elf_section(p->good, name);

	return sec && off - sec->off < sec->size ? off - sec->off : UINT64_MAX;
}

static bool is_build_id(const struct pair *p, uint64_t off, int bit)
{
	uint64_t at = offset_in(p, ".note.gnu.build-id", off);

	(void)bit;
	return at != UINT64_MAX && at >= 16;
}

static bool is_size_of_exception_tables(const struct pair *p, uint64_t off, int bit)
{
	uint64_t at = off - p->good->ehdr.e_shoff, index = at / sizeof(Elf64_Shdr);

	return index < p->good->nr_sections && bit < 2 &&
	       at % sizeof(Elf64_Shdr) == offsetof(Elf64_Shdr, sh_size) &&
	       !strcmp(p->good->sections[index].name, ".gcc_except_table.morph");
}

static const struct me_call_site *site_of(const struct me_lsda *lsda, uint64_t vaddr)
{
	uint32_t i = me_lsda_site_at(lsda, vaddr);

	return i < lsda->nr_sites && lsda->sites[i].start <= vaddr ? &lsda->sites[i] : NULL;
}

static bool is_in_a_copy(const struct pair *p, uint64_t vaddr)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (vaddr - p->map->pieces[i].new_vaddr < p->map->pieces[i].new_size)
			return true;
	return false;
}

/* Do the tables @a and @b say the same of each instruction of @fde, but not of all padding? */
static bool differ_over_padding(const struct pair *p, const struct mp_fde *fde,
				const struct me_lsda *a, const struct me_lsda *b)
{
	uint32_t nr = 0;

	for (uint64_t at = fde->start; at < fde->start + fde->size; at++) {
		const struct me_call_site *x = site_of(a, at), *y = site_of(b, at);

		if (!x == !y && (!x || (x->pad == y->pad && x->action == y->action)))
			continue;
		if (is_in_a_copy(p, at))
			return false;
		nr++;
	}
	return nr > 0;
}

/* A call site may cover int3 between two copies. */
static bool is_size_of_call_site(const struct pair *p, uint64_t off, int bit)
{
	const struct mp_fde *fde = NULL;
	struct me_lsda a = {0}, b = {0};
	const char *why;
	struct mp_elf *changed;
	struct mp_err err;
	uint64_t vaddr;
	bool same;

	(void)bit;
	if (offset_in(p, ".gcc_except_table.morph", off) == UINT64_MAX ||
	    !mp_elf_off_to_vaddr(p->good, off, &vaddr))
		return false;
	for (uint32_t i = 0; i < p->good->nr_fdes; i++) {
		const struct mp_fde *f = &p->good->fdes[i];

		if (f->lsda && f->lsda <= vaddr && (!fde || f->lsda > fde->lsda))
			fde = f;
	}
	if (!fde || mp_elf_open_memory("changed", p->bytes, p->size, MP_ELF_ALL, &changed, &err))
		return false;
	same = !me_lsda_read(p->good, fde->lsda, fde->start, fde->size, &a, &why) &&
	       !me_lsda_read(changed, fde->lsda, fde->start, fde->size, &b, &why) &&
	       differ_over_padding(p, fde, &a, &b);
	me_lsda_fini(&a);
	me_lsda_fini(&b);
	mp_elf_close(changed);
	return same;
}

static bool is_size_of_copies_symbol(const struct pair *p, uint64_t off, int bit)
{
	uint64_t at = offset_in(p, ".symtab", off);
	Elf64_Sym sym;

	(void)bit;
	if (at == UINT64_MAX)
		at = offset_in(p, ".dynsym", off);
	if (at == UINT64_MAX)
		return false;
	memcpy(&sym, p->good->data + off - at % sizeof(sym), sizeof(sym));
	return at % sizeof(sym) >= offsetof(Elf64_Sym, st_size) &&
	       sym.st_shndx < p->good->nr_sections &&
	       !strcmp(p->good->sections[sym.st_shndx].name, ".morph.text");
}

/* Up to the terminator, which a flipped bit can turn into a letter. */
static bool is_path_of_counts(const struct pair *p, uint64_t off, int bit)
{
	const struct mp_section *sec = mp_elf_section(p->good, ".morph.runtime");
	uint64_t at = offset_in(p, ".morph.runtime", off), path;

	(void)bit;
	if (at == UINT64_MAX)
		return false;
	path = sec->size - sizeof(struct me_runtime_params) +
	       offsetof(struct me_runtime_params, path);
	return at >= path && at <= path + strlen((const char *)p->good->data + sec->off + path);
}

static bool is_path_table(const struct pair *p, uint64_t off, int bit)
{
	(void)bit;
	return offset_in(p, ".morph.paths", off) != UINT64_MAX;
}

/* mov $n, %r: n; lea n(%base), %r: n and the base. */
static bool is_path_number(const struct pair *p, uint64_t off, int bit)
{
	uint64_t vaddr;

	if (!mp_elf_section(p->good, ".morph.paths") || !mp_elf_off_to_vaddr(p->good, off, &vaddr))
		return false;
	for (uint32_t i = 0; i < p->map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p->map->pieces[i];
		uint64_t at = vaddr - stub->new_vaddr;
		const uint8_t *b;

		if (stub->old_size || at >= stub->new_size)
			continue;
		b = mp_elf_bytes(p->good, stub->new_vaddr, stub->new_size);
		if (stub->new_size >= 4 && !memcmp(b, "\xf3\x0f\x1e\xfa", 4)) {
			b += 4;
			at -= 4;
		}
		if (((b[0] & 0xf8) == 0xb8 || (b[1] & 0xf8) == 0xb8) && b[4] != 0xff)
			return at - ((b[0] & 0xf8) != 0xb8) - 1 < 4;
		if (b[1] != 0x8d) /* only polls or notes */
			return false;
		return (at == 0 && bit == 0) || (at == 2 && bit < 3) ||
		       (at > 2 && at < (b[2] >> 6 == 1 ? 4u : 7u) + ((b[2] & 7) == 4));
	}
	return false;
}

static const struct mp_map_piece *piece_at(const struct pair *p, uint64_t vaddr, bool stub)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (p->map->pieces[i].new_vaddr == vaddr && !p->map->pieces[i].old_size == stub)
			return &p->map->pieces[i];
	return NULL;
}

/* A branch to a stub leads to the block behind it instead: a gs-relative count has 8 bytes. */
static bool is_way_past_a_stub(const struct pair *p, uint64_t off, int bit)
{
	uint64_t vaddr;

	if ((!mp_elf_section(p->good, ".morph.edges") &&
	     !mp_elf_section(p->good, ".morph.calls")) ||
	    !mp_elf_off_to_vaddr(p->good, off, &vaddr))
		return false;
	for (unsigned int size = 1; size <= 4; size += 3) {
		const uint8_t *b = mp_elf_bytes(p->good, vaddr, size);
		const struct mp_map_piece *stub, *past;
		int32_t disp = b ? (int8_t)*b : 0;

		if (b && size == 4)
			memcpy(&disp, b, size);
		stub = piece_at(p, vaddr + size + (uint64_t)(int64_t)disp, true);
		past = piece_at(p, vaddr + size + (uint64_t)(int64_t)(disp ^ 1 << bit), false);
		if (stub && past && stub->old_vaddr == past->old_vaddr)
			return true;
	}
	return false;
}

/* The same by an exception table: the start of its landing pads, from which a pad is 1 away. */
static bool is_pad_past_a_stub(const struct pair *p, uint64_t off, int bit)
{
	uint64_t at = offset_in(p, ".gcc_except_table.morph", off), vaddr, pad;
	const struct mp_map_piece *stub, *past;
	int32_t disp;

	if (!mp_elf_section(p->good, ".morph.edges") || at == UINT64_MAX || !at || bit != 3 ||
	    p->good->data[off - 1] != 0x1b || !mp_elf_off_to_vaddr(p->good, off, &vaddr))
		return false;
	memcpy(&disp, p->good->data + off, sizeof(disp));
	pad = vaddr + (uint64_t)(int64_t)disp + 1;
	stub = piece_at(p, pad, true);
	past = piece_at(p, pad + 8, false);
	return stub && past && stub->old_vaddr == past->old_vaddr;
}

static const struct irrelevant irrelevant[] = {
	{"what is not counted changes what the counts say, not what the program does",
	 is_way_past_a_stub},
	{"a landing pad is such a way, too", is_pad_past_a_stub},
	{"what a path's number means is for who reads profiles", is_path_table},
	{"so is the number", is_path_number},
	{"the build-id is a name that nothing is computed from; any value but the original's does",
	 is_build_id},
	{"the section of exception tables may count the zeros behind them up to the alignment",
	 is_size_of_exception_tables},
	{"no exception comes from padding, so a call site may cover it", is_size_of_call_site},
	{"where counts go does not change what the program does", is_path_of_counts},
	{"the size of a function's run of copies is for debuggers; it may end with any copy",
	 is_size_of_copies_symbol},
};

static const char *reason_for(const struct pair *p, uint64_t off, int bit)
{
	for (size_t i = 0; i < sizeof(irrelevant) / sizeof(irrelevant[0]); i++)
		if (irrelevant[i].is_one(p, off, bit))
			return irrelevant[i].why;
	return NULL;
}

/* Return: a description for messages. */
static const char *place_of(const struct pair *p, uint64_t off)
{
	static char text[128];
	uint64_t at = off - p->good->ehdr.e_shoff;

	if (at / sizeof(Elf64_Shdr) < p->good->nr_sections) {
		snprintf(text, sizeof(text), "byte %d of the header of %s",
			 (int)(at % sizeof(Elf64_Shdr)),
			 p->good->sections[at / sizeof(Elf64_Shdr)].name);
		return text;
	}
	for (uint32_t i = 1; i < p->good->nr_sections; i++) {
		const struct mp_section *sec = &p->good->sections[i];

		if (sec->type == SHT_NOBITS || off - sec->off >= sec->size)
			continue;
		snprintf(text, sizeof(text), "byte %#llx of %s",
			 (unsigned long long)(off - sec->off), sec->name);
		return text;
	}
	return "in no section";
}

/*
 * 1: fixed addresses; 2: no relocations; 4: counts; 8: a library; 16: path numbers; 32: polls;
 * 64: counts per thread; 128: with 4: two versions instead of counts; 256: with 4: a clock of calls;
 * 512: another program, whose small functions replace calls
 */
static void build(struct pair *p, int variant)
{
	char command[200];

	snprintf(command, sizeof(command), "%s%s",
		 variant & 1024	 ? STACKS
		 : variant & 512 ? LEAVES
				 : MUTANTS,
		 variant & 8   ? " -fPIC -shared -Wl,-z,separate-code"
		 : variant & 1 ? " -fno-pie -no-pie"
			       : " -fPIE -pie");
	if (variant & (4 | 16 | 512 | 1024 | 2048)) {
		snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s",
			 variant & 2 ? " -s" : " -Wl,--emit-relocs");
		pair_make(p, command, 3,
			  variant & 1024   ? PAIR_DIVIDED
			  : variant & 512  ? PAIR_INLINED
			  : variant & 128  ? PAIR_AUDITS
			  : variant & 256  ? PAIR_CALLS
			  : variant & 2048 ? PAIR_METER
			  : variant & 64   ? PAIR_THREADS
			  : variant & 4	   ? PAIR_COUNTS
			  : variant & 32   ? PAIR_POLLS
					   : PAIR_PATHS);
	} else if (variant & 2)
		pair_build_stock(p, command, 3);
	else
		pair_build(p, command, 3);
}

static void refuse_every_bit(int variant)
{
	const char *mode = getenv("MORPH_MUTATION");
	bool all = mode && !strcmp(mode, "all");
	uint64_t tried = 0, passed = 0, bad = 0;
	struct pair p;

	build(&p, variant);
	for (uint64_t off = 0; off < p.size; off++) {
		for (int bit = 0; bit < 8; bit++) {
			struct mp_err err;

			/* Flip different bits in neighbouring bytes and words. */
			if (!all && (uint64_t)bit != (off * 5 + off / 8) % 8)
				continue;
			p.bytes[off] ^= (uint8_t)(1u << bit);
			tried++;
			if (!pair_verify(&p, p.size, &err)) {
				passed++;
				if (!reason_for(&p, off, bit)) {
					printf("bit %d at file offset %#llx may change, %s\n", bit,
					       (unsigned long long)off, place_of(&p, off));
					bad++;
				}
			}
			p.bytes[off] ^= (uint8_t)(1u << bit);
		}
	}
	printf("variant %d: %llu bits of %zu bytes, %llu passed, %llu of them without a reason\n",
	       variant, (unsigned long long)tried, p.size, (unsigned long long)passed,
	       (unsigned long long)bad);
	fflush(stdout);
	ck_assert_uint_ge(tried, p.size);
	/* The build-id shows that accepted changes are noticed here. */
	ck_assert_uint_gt(passed, 0);
	ck_assert_uint_eq(bad, 0);
	pair_free(&p);
}

TIMEOUT(1200);

TEST_EACH(verify_refuses_every_flipped_bit, 8)
{
	refuse_every_bit(_i);
}

TEST_EACH(verify_refuses_every_flipped_bit_of_what_lacks_calls, 4)
{
	refuse_every_bit(512 | _i);
}

/* Functions that use the stack in place of all calls of them */
TEST_RANGE(verify_refuses_every_flipped_bit_of_what_has_frames_in_place_of_calls, 2, 4)
{
	refuse_every_bit(1024 | _i);
}

TEST(verify_refuses_every_flipped_bit_of_a_counting_library)
{
	refuse_every_bit(12);
}

TEST(verify_refuses_every_flipped_bit_of_what_counts_for_each_thread)
{
	refuse_every_bit(70);
}

TEST(verify_refuses_every_flipped_bit_of_what_has_two_versions)
{
	refuse_every_bit(134);
}

TEST(verify_refuses_every_flipped_bit_of_what_samples_calls)
{
	refuse_every_bit(262);
}

TEST(verify_refuses_every_flipped_bit_of_what_has_a_meter)
{
	refuse_every_bit(2050);
}

TEST(verify_refuses_every_flipped_bit_of_what_keeps_path_numbers)
{
	refuse_every_bit(18);
}

TEST(verify_refuses_every_flipped_bit_of_what_polls)
{
	refuse_every_bit(50);
}

/* Only one register is free: the code takes another one and restores it. */
TEST(verify_refuses_every_flipped_bit_of_notes_that_keep_a_register)
{
	uint32_t nr = 0, passed = 0;
	struct mp_err err;
	struct pair p;

	pair_make(&p, "gcc -O2 -s tests/data/tight.c", 3, PAIR_POLLS);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p.map->pieces[i];
		uint8_t *b = pair_at(&p, stub->new_vaddr);

		/* movq %r9, %xmm15 */
		if (stub->old_size || memcmp(b, "\x66\x4d\x0f\x6e\xf9", 5))
			continue;
		nr++;
		for (uint32_t bit = 0; bit < 8 * stub->new_size; bit++) {
			b[bit / 8] ^= (uint8_t)(1u << bit % 8);
			passed += !pair_verify(&p, p.size, &err);
			b[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	ck_assert_uint_gt(nr, 0);
	ck_assert_uint_eq(passed, 0);
	ck_assert_int_eq(pair_verify(&p, p.size, &err), 0);
	pair_free(&p);
}

/* A stub that sets another register contradicts the table. */
TEST(verify_refuses_a_stub_that_sets_a_register_in_use)
{
	uint32_t nr = 0;
	struct pair p;

	build(&p, 18);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p.map->pieces[i];
		uint8_t *b;

		if (stub->old_size || stub->new_size < 5)
			continue;
		b = pair_at(&p, stub->new_vaddr);
		if (b[0] != 0x41 || (b[1] & 0xf8) != 0xb8)
			continue;
		b[1] ^= 7; /* r11 and r12 */
		pair_refused(&p, "a stub sets");
		nr++;
	}
	ck_assert_uint_gt(nr, 0);
	pair_free(&p);
}

/* Otherwise the poll would repeat as long as requests are left. */
TEST(verify_refuses_a_poll_that_leads_to_what_polls)
{
	uint32_t nr = 0;
	struct pair p;

	build(&p, 50);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p.map->pieces[i];
		uint8_t *b = pair_at(&p, stub->new_vaddr);
		int32_t back;

		if (stub->old_size || stub->new_size < 13)
			continue;
		/*
		 * cmpl $0, left; jg: change it to jump to its start, or behind the instruction
		 * that sets the number
		 */
		for (uint32_t at = 0; at + 13 <= stub->new_size && at <= 8; at++) {
			if (b[at] != 0x83 || b[at + 1] != 0x3d || b[at + 7] != 0x0f ||
			    b[at + 8] != 0x8f)
				continue;
			back = -(int32_t)(at + 13);
			memcpy(&b[at + 9], &back, sizeof(back));
			pair_refused(&p, "a poll does not lead to");
			nr++;
			break;
		}
	}
	ck_assert_uint_gt(nr, 0);
	pair_free(&p);
}

/* decl left; js: a jump to the stub that samples calls of another function would blame that function. */
TEST(verify_refuses_a_count_of_calls_that_leads_to_another_function_s_sample)
{
	uint64_t sample = 0, other = 0;
	uint32_t nr = 0;
	struct pair p;

	build(&p, 262);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p.map->pieces[i];
		const uint8_t *b = pair_at(&p, stub->new_vaddr);

		if (stub->old_size || stub->new_size < 10 ||
		    memcmp(b, "\x48\x8d\x64\x24\x80\xe8", 6))
			continue;
		other = sample;
		sample = stub->new_vaddr;
	}
	ck_assert_uint_ne(other, 0);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p.map->pieces[i];
		uint8_t *b = pair_at(&p, stub->new_vaddr);
		int32_t was, disp;

		if (stub->old_size || stub->new_size < 12 || memcmp(b, "\xff\x0d", 2) ||
		    memcmp(b + 6, "\x0f\x88", 2))
			continue;
		memcpy(&was, b + 8, sizeof(was));
		disp = (int32_t)((stub->new_vaddr + 12 + (uint64_t)(int64_t)was == sample
					  ? other
					  : sample) -
				 (stub->new_vaddr + 12));
		memcpy(b + 8, &disp, sizeof(disp));
		pair_refused(&p, "a count of calls does not lead to");
		memcpy(b + 8, &was, sizeof(was));
		nr++;
	}
	ck_assert_uint_gt(nr, 0);
	pair_free(&p);
}

TEST_EACH(verify_refuses_the_original_s_build_id, 4)
{
	const struct mp_section *sec;
	struct pair p;

	build(&p, _i);
	sec = mp_elf_section(p.original, ".note.gnu.build-id");
	ck_assert_ptr_nonnull(sec);
	memcpy(p.bytes + sec->off, p.original->data + sec->off, sec->size);
	pair_refused(&p, "build-id");
	pair_free(&p);
}
