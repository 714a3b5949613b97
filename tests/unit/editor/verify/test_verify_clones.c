// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_clones - blocks with several copies: verify checks each copy, and no address that
 * a program can see gets two values.
 */
#include "tests/unit/suite.h"

#include "tests/unit/edit_fixture.h"
#include "tests/unit/verify_pair.h"

#define CONTROL "gcc -O2 tests/data/control.c"

/* Return: true if piece @i is one of several copies of its original. */
static bool is_cloned(const struct mp_map *map, uint32_t i)
{
	for (uint32_t k = 0; k < map->nr_pieces; k++)
		if (k != i && map->pieces[k].old_vaddr == map->pieces[i].old_vaddr)
			return true;
	return false;
}

TEST(verify_refuses_every_changed_byte_of_a_clone)
{
	uint32_t nr_clones = 0, nr_bytes = 0;
	struct pair p;

	pair_build(&p, CONTROL, 3);
	for (uint32_t i = 0; i < p.map->nr_pieces && nr_clones < 100; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];

		if (!is_cloned(p.map, i))
			continue;
		nr_clones++;
		for (uint32_t k = 0; k < piece->new_size; k++) {
			struct mp_err err;
			uint8_t *at = pair_at(&p, piece->new_vaddr + k);

			*at ^= 1;
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG, "%#llx+%u",
				      (unsigned long long)piece->new_vaddr, k);
			*at ^= 1;
			nr_bytes++;
		}
	}
	ck_assert_uint_gt(nr_clones, 10);
	ck_assert_uint_gt(nr_bytes, nr_clones);
	pair_free(&p);
}

/* The jump at the end of a copy is removed, so it falls into the wrong block. */
TEST(verify_refuses_a_clone_that_falls_into_another_block)
{
	struct pair p;
	uint32_t nr = 0;

	pair_build(&p, CONTROL, 3);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];
		uint8_t *jump;

		if (!is_cloned(p.map, i) || piece->new_size < 5)
			continue;
		jump = pair_at(&p, piece->new_vaddr + piece->new_size - 5);
		if (jump[0] != 0xe9)
			continue;
		memcpy(jump, "\x0f\x1f\x44\x00\x00", 5);
		pair_refused(&p, "0x");
		nr++;
	}
	ck_assert_uint_gt(nr, 5);
	pair_free(&p);
}

static bool leads_to(const struct mp_map *map, uint64_t target, uint64_t old)
{
	for (uint32_t i = 0; i < map->nr_pieces; i++)
		if (map->pieces[i].new_vaddr == target && map->pieces[i].old_vaddr == old)
			return true;
	return target == old;
}

/* A jump may lead to any copy of its target, but not to another block. */
TEST(verify_takes_a_jump_to_any_copy_of_its_target)
{
	uint32_t nr_accepted = 0, nr_refused = 0;
	struct pair p;

	pair_build(&p, CONTROL, 3);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];
		uint64_t end = piece->new_vaddr + piece->new_size, target;
		int32_t disp;
		uint8_t *jump;

		/* A jump that was added to a block, to its old fall-through. */
		if (piece->new_size != piece->old_size + 5)
			continue;
		jump = pair_at(&p, end - 5);
		memcpy(&disp, jump + 1, 4);
		target = end + (uint64_t)(int64_t)disp;
		if (!leads_to(p.map, target, piece->old_vaddr + piece->old_size))
			continue;
		for (uint32_t k = 0; jump[0] == 0xe9 && k < p.map->nr_pieces; k++) {
			const struct mp_map_piece *to = &p.map->pieces[k];
			bool same = to->old_vaddr == piece->old_vaddr + piece->old_size;
			struct mp_err err;
			int rc;

			if (to->new_vaddr == target || (!same && k % 16))
				continue;
			/* An empty copy has the same address as the next one. */
			if (!to->new_size || (k && !to[-1].new_size))
				continue;
			disp = (int32_t)(to->new_vaddr - end);
			memcpy(jump + 1, &disp, 4);
			rc = pair_verify(&p, p.size, &err);
			ck_assert_msg(same ? !rc : rc == -EBADMSG, "%#llx: %s",
				      (unsigned long long)end, err.msg);
			nr_accepted += same;
			nr_refused += !same;
			pair_restore(&p);
		}
	}
	ck_assert_uint_gt(nr_accepted, 0);
	ck_assert_uint_gt(nr_refused, 20);
	pair_free(&p);
}

/* Replaces the output's map by @map. Return: true if it fits. */
static bool put_map(struct pair *p, const struct mp_map *map)
{
	const struct mp_section *sec = mp_elf_section(p->good, MP_MAP_SECTION);
	struct mp_err err;
	uint8_t *bytes;
	size_t size;
	bool fits;

	if (mp_map_encode(map, &bytes, &size, &err))
		return false;
	fits = size <= sec->size;
	if (fits) {
		memset(p->bytes + sec->off, 0, sec->size);
		memcpy(p->bytes + sec->off, bytes, size);
	}
	free(bytes);
	return fits;
}

TEST(verify_refuses_a_map_that_is_wrong_about_a_clone)
{
	uint32_t nr[5] = {0};
	struct mp_map map;
	struct pair p;

	pair_build(&p, CONTROL, 3);
	map = *p.map;
	map.pieces = malloc((map.nr_pieces + 1) * sizeof(*map.pieces));
	ck_assert_ptr_nonnull(map.pieces);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		if (!is_cloned(p.map, i) || !p.map->pieces[i].new_size)
			continue;
		for (int way = 0; way < 5; way++) {
			struct mp_map_piece *m = &map.pieces[i];
			struct mp_err err;

			map.nr_pieces = p.map->nr_pieces;
			memcpy(map.pieces, p.map->pieces, map.nr_pieces * sizeof(*m));
			switch (way) {
			case 0: m->old_size++; break;
			case 1: m->old_size--; break;
			case 2: m->new_size--; break;
			case 3: m->old_vaddr += m->old_size; break;
			default:
				map.nr_pieces--;
				memmove(m, m + 1, (map.nr_pieces - i) * sizeof(*m));
			}
			if (put_map(&p, &map)) {
				ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
					      "copy at %#llx, way %d",
					      (unsigned long long)p.map->pieces[i].new_vaddr, way);
				nr[way]++;
			}
			pair_restore(&p);
		}
	}
	for (int way = 0; way < 5; way++)
		ck_assert_msg(nr[way] > 3, "way %d tried %u times only", way, nr[way]);
	free(map.pieces);
	pair_free(&p);
}

/* Return: index of the copy of a jump to itself; nr_pieces: there is none, or nothing stands right behind it. */
static uint32_t find_endless(const struct pair *p)
{
	const struct mp_map_piece *piece = p->map->pieces;
	uint32_t i = 0;

	for (; i < p->map->nr_pieces; i++) {
		const uint8_t *b = mp_elf_bytes(p->good, piece[i].new_vaddr, piece[i].new_size);

		if (piece[i].new_size == 2 && !memcmp(b, "\xeb\xfe", 2) &&
		    i + 1 < p->map->nr_pieces && piece[i + 1].new_vaddr == piece[i].new_vaddr + 2)
			break;
	}
	return i;
}

/* An endless loop becomes a no-op with an empty copy behind it, which falls into the next block. */
TEST(verify_refuses_an_endless_loop_without_code)
{
	static const char program[] =
		"sh -c 'for i in 1 2 3 4 5 6 7 8; do [ $i -gt %d ] || echo \"int f$i(void) { return $i; }\"; "
		"done; echo \"int main(int c, char **v) { (void)v; if (c > 1) for (;;); return c * 3; }\"' | "
		"gcc -O1 -x c -";
	uint32_t nr = 0;

	for (int k = 0; k < 8; k++) {
		char command[512];
		struct mp_err err;
		struct pair p;
		uint32_t i;

		snprintf(command, sizeof(command), program, k);
		pair_build_as_it_is(&p, command, 0);
		i = find_endless(&p);
		ck_assert_uint_ne(i, p.map->nr_pieces);
		memcpy(pair_at(&p, p.map->pieces[i].new_vaddr), "\x66\x90", 2);
		p.map->pieces[i].new_vaddr += 2;
		p.map->pieces[i].new_size = 0;
		/* The map has a few bytes more. */
		if (put_map(&p, p.map)) {
			ck_assert_int_eq(pair_verify(&p, p.size, &err), -EBADMSG);
			ck_assert_msg(strstr(err.msg, "leads to"), "%s", err.msg);
			nr++;
		}
		pair_free(&p);
	}
	ck_assert_uint_gt(nr, 0);
}

/* Each stub that ends in a jump leads to itself; or to the old place of its block, whose patch leads back. */
TEST(verify_refuses_stubs_that_go_round)
{
	uint32_t nr[2] = {0};
	struct pair p;

	pair_make(&p, CONTROL, 3, PAIR_COUNTS);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *stub = &p.map->pieces[i];
		uint64_t end = stub->new_vaddr + stub->new_size;
		uint8_t *jump, *patch = pair_at(&p, stub->old_vaddr);
		int32_t disp = (int32_t)-stub->new_size;

		if (stub->old_size || stub->new_size < 5)
			continue;
		jump = pair_at(&p, end - 5);
		if (jump[3] != 0xeb && jump[0] != 0xe9)
			continue;
		if (jump[0] == 0xe9)
			memcpy(jump + 1, &disp, 4);
		else
			jump[4] = (uint8_t)disp;
		pair_refused(&p, "does not continue");
		nr[0]++;
		if (jump[0] != 0xe9 || patch[0] != 0xe9 ||
		    !memcmp(patch, mp_elf_bytes(p.original, stub->old_vaddr, 5), 5))
			continue;
		disp = (int32_t)(stub->old_vaddr - end);
		memcpy(jump + 1, &disp, 4);
		disp = (int32_t)(stub->new_vaddr - stub->old_vaddr - 5);
		memcpy(patch + 1, &disp, 4);
		pair_refused(&p, "does not continue");
		nr[1]++;
	}
	ck_assert_uint_gt(nr[0], 5);
	ck_assert_uint_gt(nr[1], 0);
	pair_free(&p);
}

/* ---- addresses that a program sees ---------------------------------------------------------- */

#define TEXT                                                                                       \
	".text\n.globl main\n.type main, @function\nmain: .cfi_startproc\n"                        \
	" mov $1, %edi\n call f\n xor %eax, %eax\n ret\n .cfi_endproc\n.size main, .-main\n"       \
	".globl f\n.type f, @function\n.p2align 4\nf: .cfi_startproc\n cmp $3, %edi\n ja 9f\n"     \
	" mov %edi, %edi\n jmp *table(,%rdi,8)\n"                                                  \
	"1: mov $11, %eax\n nop\n ret\n2: mov $12, %eax\n nop\n ret\n"                             \
	"9: mov $19, %eax\n nop\n ret\n .cfi_endproc\n.size f, .-f\n"                              \
	".section .rodata\n.p2align 3\ntable: .quad 1b, 2b, 1b, 2b\n"                              \
	".section .note.GNU-stack,\"\",@progbits\n"

/* A plan, emitted, whose bytes the test can change and verify. */
struct emitted {
	struct fixture f;
	struct me_emitted out;
	struct mp_elf *elf;
	uint8_t *bytes;
};

static int emitted_verify(struct emitted *e, struct mp_err *err)
{
	struct mp_elf *elf;
	int rc = mp_elf_open_memory("output", e->bytes, e->out.output.size_bytes, MP_ELF_ALL, &elf,
				    err);

	ck_assert_msg(!rc, "%s", err->msg);
	rc = me_verify(e->f.elf, elf, NULL, err);
	mp_elf_close(elf);
	return rc;
}

static void emitted_build(struct emitted *e)
{
	struct mp_err err = {""};

	ck_assert_msg(!rewrite_emit(e->f.cfg, &e->f.plan, &e->out, &err), "%s", err.msg);
	e->bytes = calloc(1, e->out.output.size_bytes);
	ck_assert_ptr_nonnull(e->bytes);
	for (uint32_t i = 0; i < e->out.output.nr_parts; i++)
		memcpy(e->bytes + e->out.output.parts[i].off, e->out.output.parts[i].bytes,
		       e->out.output.parts[i].size);
}

static void emitted_free(struct emitted *e)
{
	free(e->bytes);
	me_emitted_fini(&e->out);
	fixture_free(&e->f);
}

/* Plans f with a second copy of block @nr. */
static void plan_with_clone(struct fixture *f, uint32_t nr)
{
	fixture_plan_all(f, "f");
	fixture_plan(f, "f", nr)->clone = true;
}

TEST(verify_refuses_a_pointer_to_a_function_with_two_copies_of_its_entry)
{
	static const char *const pointers[] = {"", ".data\np: .quad f\n"};

	for (size_t i = 0; i < 2; i++) {
		struct mp_err err = {""};
		struct emitted e = {0};
		char source[2048];

		snprintf(source, sizeof(source), "%s%s", TEXT, pointers[i]);
		fixture_build(&e.f, "assembler", "-no-pie", source);
		plan_with_clone(&e.f, 0);
		emitted_build(&e);
		/* If f is only called, any number of copies is allowed. */
		ck_assert_msg(emitted_verify(&e, &err) == (i ? -EBADMSG : 0), "%s", err.msg);
		emitted_free(&e);
	}
}

TEST(verify_refuses_words_of_one_label_that_lead_to_different_copies)
{
	struct mp_err err = {""};
	struct emitted e = {0};
	struct mp_elf *elf;
	struct mp_map *map;
	uint64_t old, word, off, other = 0;

	fixture_build(&e.f, "assembler", "-no-pie", TEXT);
	old = fixture_block_vaddr(&e.f, "f", 2);
	plan_with_clone(&e.f, 2);
	emitted_build(&e);
	ck_assert_msg(!emitted_verify(&e, &err), "%s", err.msg);
	ck_assert(mp_elf_vaddr_to_off(e.f.elf, fixture_vaddr(&e.f, "table"), &off));
	memcpy(&word, e.bytes + off, 8);
	ck_assert_uint_ne(word, old);
	ck_assert(!memcmp(e.bytes + off, e.bytes + off + 16, 8));
	ck_assert_int_eq(mp_elf_open_memory("output", e.bytes, e.out.output.size_bytes, MP_ELF_ALL,
					    &elf, &err),
			 0);
	ck_assert_int_eq(mp_map_read(elf, &map, &err), 0);
	for (uint32_t i = 0; i < map->nr_pieces; i++)
		if (map->pieces[i].old_vaddr == old && map->pieces[i].new_vaddr != word)
			other = map->pieces[i].new_vaddr;
	ck_assert_uint_ne(other, 0);
	mp_map_free(map);
	mp_elf_close(elf);
	/* First one of the two words, then both. */
	memcpy(e.bytes + off, &other, 8);
	ck_assert_int_eq(emitted_verify(&e, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "differ") != NULL, "%s", err.msg);
	memcpy(e.bytes + off + 16, &other, 8);
	ck_assert_msg(!emitted_verify(&e, &err), "%s", err.msg);
	emitted_free(&e);
}

/*
 * The second copy of a block that is only a jump becomes an empty one, right before the copy of its target. Then it has an
 * address of another label.
 */
static void empty_clone(struct emitted *e, uint64_t old)
{
	struct mp_err err = {""};
	const struct mp_section *sec;
	struct mp_elf *elf;
	struct mp_map *map;
	uint8_t *bytes;
	uint64_t off;
	size_t size;
	uint32_t i;

	ck_assert(!mp_elf_open_memory("output", e->bytes, e->out.output.size_bytes, MP_ELF_ALL,
				      &elf, &err));
	ck_assert_int_eq(mp_map_read(elf, &map, &err), 0);
	for (i = map->nr_pieces - 1; map->pieces[i].old_vaddr != old; i--)
		;
	ck_assert_uint_eq(map->pieces[i].new_size, 2);
	ck_assert(mp_elf_vaddr_to_off(elf, map->pieces[i].new_vaddr, &off));
	memcpy(e->bytes + off, "\x66\x90", 2);
	map->pieces[i].new_vaddr += 2;
	map->pieces[i].new_size = 0;
	ck_assert(!mp_map_encode(map, &bytes, &size, &err));
	sec = mp_elf_section(elf, MP_MAP_SECTION);
	ck_assert_msg(size <= sec->size, "%zu %zu", size, (size_t)sec->size);
	memset(e->bytes + sec->off, 0, sec->size);
	memcpy(e->bytes + sec->off, bytes, size);
	free(bytes);
	mp_map_free(map);
	mp_elf_close(elf);
}

TEST(verify_refuses_two_labels_with_one_address)
{
	static const char text[] =
		".text\n.globl main\n.type main, @function\nmain: .cfi_startproc\n"
		" mov $1, %edi\n call f\n xor %eax, %eax\n ret\n .cfi_endproc\n.size main, .-main\n"
		".globl f\n.type f, @function\n.p2align 4\nf: .cfi_startproc\n cmp $3, %edi\n ja 9f\n"
		" mov %edi, %edi\n jmp *table(,%rdi,8)\n"
		"1: jmp 2f\n9: mov $19, %eax\n nop\n ret\n2: mov $12, %eax\n nop\n ret\n"
		" .cfi_endproc\n.size f, .-f\n"
		".section .rodata\n.p2align 3\ntable: .quad 1b, 2b, 1b, 2b\n"
		".section .note.GNU-stack,\"\",@progbits\n";
	static const uint8_t order[] = {0, 1, 2, 3, 2, 4};
	struct mp_err err = {""};
	struct emitted e = {0};
	uint64_t words[4], off;

	fixture_build(&e.f, "assembler", "-no-pie", text);
	for (size_t i = 0; i < sizeof(order); i++)
		fixture_plan(&e.f, "f", order[i])->clone = i == 4;
	emitted_build(&e);
	ck_assert_msg(!emitted_verify(&e, &err), "%s", err.msg);
	empty_clone(&e, fixture_block_vaddr(&e.f, "f", 2));
	ck_assert_msg(!emitted_verify(&e, &err), "%s", err.msg);
	ck_assert(mp_elf_vaddr_to_off(e.f.elf, fixture_vaddr(&e.f, "table"), &off));
	memcpy(words, e.bytes + off, sizeof(words));
	ck_assert_uint_ne(words[0], words[1]);
	words[0] = words[2] = words[1];
	memcpy(e.bytes + off, words, sizeof(words));
	ck_assert_int_eq(emitted_verify(&e, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "same address"), "%s", err.msg);
	emitted_free(&e);
}

#define NR_TURNS 10000

/* The unwind rows of both functions would be read again for each of these copies. */
TEST(copies_of_two_functions_do_not_take_turns_for_ever)
{
	static const char *const names[] = {"a", "b"};
	struct rewrite_bytes bytes;
	struct me_emitted emitted;
	struct mp_elf *output = NULL;

	fixture_build(&f, "c", "-O1",
		      "int a(int x) { int y = 0; while (x-- > 3) y ^= x; return y; }"
		      "int b(int x) { int y = 1; while (x-- > 5) y += x; return y; }"
		      "int main(int c, char **v) { (void)v; return a(c) + b(c); }");
	f.plan.blocks = calloc(f.cfg->nr_blocks + 2 * NR_TURNS, sizeof(*f.plan.blocks));
	fixture_plan_all(&f, "a");
	fixture_plan_all(&f, "b");
	for (int i = 0; i < 2 * NR_TURNS; i++) {
		const struct mp_func *func = &f.cfg->funcs[fixture_func(&f, names[i % 2])];

		/* The last block returns. */
		fixture_plan(&f, names[i % 2], func->nr_blocks - 1)->clone = 1;
	}
	ck_assert_msg(!rewrite_emit(f.cfg, &f.plan, &emitted, &err), "%s", err.msg);
	bytes = rewrite_flatten(&emitted.output);
	ck_assert_ptr_nonnull(bytes.data);
	ck_assert_int_eq(
		mp_elf_open_memory("output", bytes.data, bytes.size, MP_ELF_ALL, &output, &err), 0);
	ck_assert_int_eq(me_verify(f.elf, output, NULL, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "would take too long") != NULL, "%s", err.msg);
	mp_elf_close(output);
	free(bytes.data);
	me_emitted_fini(&emitted);
	fixture_free(&f);
}
