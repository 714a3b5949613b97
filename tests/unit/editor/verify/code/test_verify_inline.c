// SPDX-License-Identifier: Apache-2.0
// check-all: many programs are built, changed and verified
/*
 * test_verify_inline - functions that replace calls of them in copies: verify proves the good ones, and refuses
 * changed ones, and functions and callers of other kinds.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

#define SITES_MAX 200

static const char *const builds[] = {
	"gcc -O2 -fPIE -pie tests/data/leaf.c",
	"gcc -O2 -fno-pie -no-pie tests/data/leaf.c",
	"gcc -O2 -fPIE -pie -fcf-protection tests/data/leaf.c",
	"g++ -x c++ -O2 -fPIE -pie -fnon-call-exceptions tests/data/leaf.c",
	/* Functions that save registers and use the stack */
	"gcc -O2 -fPIE -pie tests/data/leaf_stack.c",
	"g++ -x c++ -O2 -fno-pie -no-pie -fnon-call-exceptions tests/data/leaf_stack.c",
	/* Functions that call others, and end in jumps to others */
	"gcc -O2 -fPIE -pie tests/data/leaf_calls.c",
	"g++ -x c++ -O2 -fno-pie -no-pie tests/data/leaf_calls.c",
	/* Functions with a part for cold code */
	"gcc -O2 -fPIE -pie tests/data/leaf_cold.c",
};

#define FIRST_STACK 4
#define FIRST_CALLS 6
#define NR_BUILDS   ((int)(sizeof(builds) / sizeof(builds[0])))

static void build(struct pair *p, int variant, uint64_t seed)
{
	char line[512];

	snprintf(line, sizeof(line), "%s %s", builds[variant / 2],
		 variant & 1 ? "-Wl,--emit-relocs" : "-s");
	/* Functions that call others only replace calls by a profile, or at random: all, by these seeds. */
	if (variant / 2 >= FIRST_CALLS)
		pair_make(p, line, 4 * seed + 3, PAIR_DIVIDED);
	else
		pair_make(p, line, seed, PAIR_INLINED);
}

/* Does the copy lower the stack pointer in place of the call? */
static bool is_lowered(const struct pair *p, const struct mp_map_piece *piece)
{
	const uint8_t *last = mp_elf_bytes(p->good, piece->new_vaddr + piece->new_size - 1, 1);

	return piece->new_size + 4 == piece->old_size && last && *last == 0x50;
}

/* Return: where the call at the end of the original of @piece leads, if its copy lacks that call; else 0. */
static uint64_t lacking(const struct pair *p, const struct mp_map_piece *piece)
{
	const uint8_t *call;
	int32_t disp;

	if (piece->old_size < 5 ||
	    (piece->new_size != piece->old_size - 5 && !is_lowered(p, piece)))
		return 0;
	call = mp_elf_bytes(p->original, piece->old_vaddr + piece->old_size - 5, 5);
	if (!call || *call != 0xe8)
		return 0;
	memcpy(&disp, call + 1, sizeof(disp));
	return piece->old_vaddr + piece->old_size + (uint64_t)(int64_t)disp;
}

/* Code that replaces a call: its parts are pieces that follow one another. */
struct site {
	const struct mp_map_piece *piece;
	uint32_t nr_parts;
	uint64_t size; /* of all parts */
};

/* A block this far behind a function's start is not the function's: functions that replace calls are smaller. */
#define FUNCTION_MAX 256

static uint32_t find_sites(const struct pair *p, struct site *sites)
{
	uint32_t nr = 0;

	for (uint32_t i = 1; i < p->map->nr_pieces && nr < SITES_MAX; i++) {
		const struct mp_map_piece *piece = &p->map->pieces[i];
		const struct mp_map_piece *end = p->map->pieces + p->map->nr_pieces, *q;
		uint64_t to = lacking(p, piece - 1);

		if (!to || piece->old_vaddr - to > 4)
			continue;
		for (q = piece + 1; q < end && q->old_vaddr > piece->old_vaddr &&
				    q->old_vaddr - to < FUNCTION_MAX;)
			q++;
		sites[nr++] = (struct site){piece, (uint32_t)(q - piece),
					    q[-1].new_vaddr + q[-1].new_size - piece->new_vaddr};
	}
	return nr;
}

TEST_EACH(verify_proves_functions_in_place_of_calls, 2 * NR_BUILDS)
{
	struct site sites[SITES_MAX];
	struct pair p;
	uint32_t nr, nr_empty = 0, nr_branching = 0, nr_lowered = 0;
	bool stack = _i / 2 >= FIRST_STACK;

	build(&p, _i, 0);
	nr = find_sites(&p, sites);
	for (uint32_t i = 0; i < nr; i++) {
		nr_empty += !sites[i].size;
		nr_branching += sites[i].nr_parts > 2;
		nr_lowered += is_lowered(&p, sites[i].piece - 1);
	}
	ck_assert_uint_ge(nr, (stack ? 4u : 13u));
	ck_assert_uint_ge(nr_empty, (stack ? 0u : 1u));
	ck_assert_uint_ge(nr_branching, 2);
	ck_assert_uint_ge(nr_lowered, 1);
	ck_assert_uint_lt(nr_lowered, nr);
	ck_assert_uint_eq(p.report.nr_inlined, nr);
	pair_free(&p);
	for (uint64_t seed = 1; seed < 4; seed++) {
		build(&p, _i, seed);
		pair_free(&p);
	}
}

/* Where the call leads whose displacement has the byte at @at, if one has. */
static uint64_t call_around(struct pair *p, uint64_t at)
{
	for (uint64_t k = 1; k <= 4; k++) {
		const uint8_t *call = pair_at(p, at - k);
		int32_t disp;

		memcpy(&disp, call + 1, sizeof(disp));
		if (*call == 0xe8)
			return at - k + 5 + (uint64_t)(int64_t)disp;
	}
	return 0;
}

/* May a changed bit of the byte at @at let a call lead to the old code of the same function? That is the same program. */
static bool leads_to_old_code(struct pair *p, uint64_t at, uint8_t bit)
{
	uint64_t now = call_around(p, at), was;
	bool same = false;

	*pair_at(p, at) ^= bit;
	was = call_around(p, at);
	*pair_at(p, at) ^= bit;
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		same |= p->map->pieces[i].new_vaddr == was && p->map->pieces[i].old_vaddr == now;
	return same;
}

TEST_EACH(verify_refuses_changed_bits_of_inlined_code, 2 * NR_BUILDS)
{
	struct site sites[SITES_MAX];
	struct pair p;
	uint32_t nr;

	build(&p, _i, 1);
	nr = find_sites(&p, sites);
	ck_assert_uint_ge(nr, 1);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t bit = 0; bit < 8 * sites[i].size; bit++) {
			uint64_t at = sites[i].piece->new_vaddr + bit / 8;
			struct mp_err err;

			*pair_at(&p, at) ^= (uint8_t)(1 << bit % 8);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG ||
					      leads_to_old_code(&p, at, (uint8_t)(1 << bit % 8)),
				      "bit %u at %#llx: accepted", bit % 8, (unsigned long long)at);
			pair_restore(&p);
		}
	pair_free(&p);
}

/* Return: the bytes of the next entry of .eh_frame behind @at that is an FDE of copies, *@size; 0: there is none. */
static size_t next_fde(const struct pair *p, const struct mp_section *eh, size_t at, size_t *size)
{
	const struct mp_section *text = mp_elf_section(p->good, ".morph.text");

	for (at += *size; at + 16 <= eh->off + eh->size; at += *size) {
		uint32_t length, id;
		int32_t pc;

		memcpy(&length, p->good->data + at, sizeof(length));
		memcpy(&id, p->good->data + at + 4, sizeof(id));
		memcpy(&pc, p->good->data + at + 8, sizeof(pc));
		*size = length + 4;
		if (length && id &&
		    eh->vaddr + (at + 8 - eh->off) + (uint64_t)(int64_t)pc - text->vaddr <
			    text->size)
			return at;
		if (!length)
			break;
	}
	return 0;
}

/* Rows of code that replaces calls of functions with a frame */
TEST_EACH(verify_refuses_changed_bits_of_rows, NR_BUILDS - FIRST_STACK)
{
	const struct mp_section *eh;
	size_t at, size = 0, nr = 0;
	char line[512];
	struct pair p;

	snprintf(line, sizeof(line), "%s -s", builds[FIRST_STACK + _i]);
	pair_make(&p, line, 3, PAIR_DIVIDED);
	ck_assert_uint_ge(p.report.nr_inlined, 8);
	eh = mp_elf_section(p.good, ".eh_frame");
	at = eh->off;
	while ((at = next_fde(&p, eh, at, &size)))
		for (size_t bit = 0; bit < 8 * size; bit++) {
			struct mp_err err;

			p.bytes[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
				      "bit %zu of the FDE at %#zx: accepted", bit, at);
			p.bytes[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			nr++;
		}
	ck_assert_uint_ge(nr, 8 * 300);
	pair_free(&p);
}

/* Return: the first piece of the code that lies apart, which the plan has behind everything else. */
static uint32_t first_apart(const struct pair *p)
{
	uint32_t i = p->map->nr_pieces;

	while (i--) {
		uint32_t k = 0;

		/* Each block has one copy of its own, too. */
		while (k < i && p->map->pieces[k].old_vaddr != p->map->pieces[i].old_vaddr)
			k++;
		if (k == i)
			return i + 1;
	}
	return 0;
}

TEST_EACH(verify_refuses_changed_bits_of_code_that_lies_apart, NR_BUILDS)
{
	uint32_t nr_apart = 0;

	for (uint64_t seed = 3; seed < 20; seed += 4) {
		char line[512];
		struct pair p;
		uint32_t first;

		snprintf(line, sizeof(line), "%s -s", builds[_i]);
		pair_make(&p, line, seed, PAIR_DIVIDED);
		first = first_apart(&p);
		nr_apart += p.map->nr_pieces - first;
		for (uint32_t i = first; i < p.map->nr_pieces; i++) {
			const struct mp_map_piece *piece = &p.map->pieces[i];

			for (uint32_t bit = 0; bit < 8 * piece->new_size; bit++) {
				uint64_t at = piece->new_vaddr + bit / 8;
				struct mp_err err;

				*pair_at(&p, at) ^= (uint8_t)(1 << bit % 8);
				ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG ||
						      leads_to_old_code(&p, at,
									(uint8_t)(1 << bit % 8)),
					      "seed %d, bit %u at %#llx: accepted", (int)seed,
					      bit % 8, (unsigned long long)at);
				pair_restore(&p);
			}
		}
		pair_free(&p);
	}
	ck_assert_uint_ge(nr_apart, 10);
}

/* Debug information has two ranges for such code. */
TEST_EACH(verify_proves_code_apart_beside_debug_information, NR_BUILDS)
{
	char line[512];
	struct pair p;

	snprintf(line, sizeof(line), "%s -g", builds[_i]);
	pair_make(&p, line, 3, PAIR_DIVIDED);
	ck_assert_uint_ge(p.report.nr_inlined, 5);
	ck_assert_uint_lt(first_apart(&p), p.map->nr_pieces);
	pair_free(&p);
}

/* Puts the code of another inlined function of the same length there. */
TEST_EACH(verify_refuses_another_function, 2 * FIRST_STACK)
{
	struct site sites[SITES_MAX];
	uint32_t nr, nr_exchanged = 0;
	struct pair p;

	build(&p, _i, 0);
	nr = find_sites(&p, sites);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = i + 1; k < nr; k++) {
			uint8_t *a = pair_at(&p, sites[i].piece->new_vaddr);
			const uint8_t *b = pair_at(&p, sites[k].piece->new_vaddr);
			struct mp_err err;

			if (!sites[i].size || sites[i].size != sites[k].size ||
			    !memcmp(a, b, sites[i].size))
				continue;
			memcpy(a, b, sites[i].size);
			ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
				      "accepted at %#llx",
				      (unsigned long long)sites[i].piece->new_vaddr);
			pair_restore(&p);
			nr_exchanged++;
		}
	ck_assert_uint_ge(nr_exchanged, 1);
	pair_free(&p);
}

/* Writes the changed map, if it needs as many bytes. */
static bool put_map(struct pair *p)
{
	const struct mp_section *note = mp_elf_section(p->good, ".note.morph");
	struct mp_err err;
	uint8_t *bytes;
	size_t size;

	ck_assert_int_eq(mp_map_encode(p->map, &bytes, &size, &err), 0);
	if (size == note->size)
		memcpy(p->bytes + note->off, bytes, size);
	free(bytes);
	return size == note->size;
}

/* The map says of each part of a function that it is another one, or an end of it. */
TEST_EACH(verify_refuses_a_wrong_map_of_parts, 2 * NR_BUILDS)
{
	struct site sites[SITES_MAX];
	uint32_t nr, nr_changed = 0;
	struct pair p;

	build(&p, _i, 0);
	nr = find_sites(&p, sites);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k + 1 < sites[i].nr_parts; k++)
			for (int way = 0; way < 3; way++) {
				struct mp_map_piece *a =
					&p.map->pieces[sites[i].piece - p.map->pieces] + k;
				struct mp_map_piece was[2] = {a[0], a[1]};
				struct mp_err err;

				if (way == 0) {
					a[0].old_vaddr = was[1].old_vaddr;
					a[1].old_vaddr = was[0].old_vaddr;
				} else if (way == 1) {
					a[0].old_size = was[1].old_size;
					a[1].old_size = was[0].old_size;
				} else {
					a[0].old_vaddr++;
				}
				if (memcmp(was, a, sizeof(was)) && put_map(&p)) {
					ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
						      "accepted: part %u at %#llx, way %d", k,
						      (unsigned long long)a->new_vaddr, way);
					nr_changed++;
				}
				memcpy(a, was, sizeof(was));
				pair_restore(&p);
			}
	ck_assert_uint_ge(nr_changed, 4);
	pair_free(&p);
}

/* Writes the changed map, which needs at most as many bytes; the section and its segment become so small. */
static bool put_smaller_map(struct pair *p)
{
	const struct mp_section *note = mp_elf_section(p->good, ".note.morph");
	const Elf64_Ehdr *eh = &p->good->ehdr;
	uint64_t at = eh->e_shoff + (uint64_t)(note - p->good->sections) * sizeof(Elf64_Shdr);
	Elf64_Phdr *phdr = (void *)(p->bytes + eh->e_phoff);
	struct mp_err err;
	uint8_t *bytes;
	size_t size;

	ck_assert_int_eq(mp_map_encode(p->map, &bytes, &size, &err), 0);
	if (size <= note->size) {
		memset(p->bytes + note->off, 0, note->size);
		memcpy(p->bytes + note->off, bytes, size);
		memcpy(p->bytes + at + offsetof(Elf64_Shdr, sh_size), &size, sizeof(size));
		while (phdr->p_type != PT_LOAD || phdr->p_offset > note->off ||
		       phdr->p_offset + phdr->p_filesz <= note->off)
			phdr++;
		ck_assert_uint_eq(phdr->p_offset + phdr->p_filesz, note->off + note->size);
		phdr->p_filesz = phdr->p_memsz = note->off + size - phdr->p_offset;
	}
	free(bytes);
	return size <= note->size;
}

enum call_change {
	CALL_BACK,
	CALL_BEFORE,
	CALL_CALLEE,
	CALL_LONGER,
	CALL_SHORTER,
	CALL_LATER,
	NR_CALL_CHANGES
};

static void change_call(struct mp_map_call *call, enum call_change how)
{
	call->back += how == CALL_BACK;
	call->back -= how == CALL_BEFORE;
	call->callee += how == CALL_CALLEE ? 4 : 0;
	call->nr += how == CALL_LONGER;
	call->nr -= how == CALL_SHORTER || how == CALL_LATER;
	call->first += how == CALL_LATER;
}

TEST_EACH(verify_refuses_a_map_that_names_other_calls, NR_BUILDS + 1)
{
	uint32_t nr_changed[NR_CALL_CHANGES] = {0};
	struct mp_map_call was;
	struct mp_err err;
	struct pair p;

	if (_i < NR_BUILDS)
		build(&p, 2 * _i, 0);
	else
		pair_make(&p, "gcc -O2 -fPIE -pie -s tests/data/leaf.c", 3, PAIR_DIVIDED);
	ck_assert_uint_ge(p.map->nr_calls, p.report.nr_inlined);
	if (_i == NR_BUILDS)
		ck_assert_uint_gt(p.map->nr_calls, p.report.nr_inlined);
	for (uint32_t i = 0; i < p.map->nr_calls; i++)
		for (int how = 0; how < NR_CALL_CHANGES; how++) {
			struct mp_map_call *call = &p.map->calls[i];
			uint32_t end = call->first + call->nr;

			if ((how >= CALL_SHORTER && call->nr == 1) ||
			    (how == CALL_LONGER &&
			     end == (i + 1 < p.map->nr_calls ? call[1].first : p.map->nr_pieces)))
				continue;
			was = *call;
			change_call(call, how);
			if (put_smaller_map(&p)) {
				ck_assert_msg(pair_verify(&p, p.size, &err) == -EBADMSG,
					      "accepted: call %u, change %d", i, how);
				ck_assert_msg(strstr(err.msg, "the map "), "%s", err.msg);
				nr_changed[how]++;
			}
			*call = was;
			pair_restore(&p);
		}
	ck_assert_uint_ge(nr_changed[CALL_BACK], 5);
	ck_assert_uint_ge(nr_changed[CALL_BEFORE], 5);
	ck_assert_uint_ge(nr_changed[CALL_CALLEE], 5);
	ck_assert_uint_ge(nr_changed[CALL_LONGER], 5);
	ck_assert_uint_ge(nr_changed[CALL_SHORTER], 1);
	pair_free(&p);
}

/* A map may lack all calls, but not some; here the bytes that named them are left over. */
TEST_EACH(verify_refuses_a_map_without_some_calls, NR_BUILDS)
{
	struct pair p;
	uint32_t nr;

	build(&p, 2 * _i, 0);
	nr = p.map->nr_calls;
	ck_assert_uint_ge(nr, 6);
	p.map->nr_calls = nr - 1;
	ck_assert(put_smaller_map(&p));
	pair_refused(&p, "does not name the call");
	p.map->nr_calls = 0;
	ck_assert(put_smaller_map(&p));
	pair_refused(&p, "belong to no section");
	p.map->nr_calls = nr;
	pair_free(&p);
}

/* A change of the original: @size bytes before the constant, in all places of both files. */
struct change {
	const char *constant;
	size_t size;
	const char *code;
	const char *word; /* of the refusal; NULL: accepted */
};

/* In the block that the branch of a function leads to, and in the last one */
#define TAKEN  "\x48\xba\x21\x43\x65\x87\x44\x33\x22\x11"
#define LAST   "\x48\xba\x21\x43\x65\x87\x44\x33\x22\x12"
#define LEAF   "\x48\xb9\x88\x77\x66\x55\x44\x33\x22\x11"
#define CALLER "\x48\xb9\x11\x88\x77\x66\x55\x44\x33\x22"

static const struct change changes[] = {
	{LEAF, 3, "\x48\x89\xf0", NULL},     /* mov %rsi, %rax */
	{LEAF, 3, "\x48\x89\xe0", "places"}, /* mov %rsp, %rax: it may change its return address */
	{LEAF, 3, "\x48\x89\xc4", "stack pointer"},   /* mov %rax, %rsp */
	{LEAF, 3, "\x40\x88\xe0", "stack pointer"},   /* mov %spl, %al */
	{LEAF, 3, "\x8b\x04\x24", "places"},	      /* mov (%rsp), %eax: so may this */
	{LEAF, 3, "\x50\x58\x90", "row"},	      /* push %rax; pop %rax */
	{LEAF, 3, "\x0f\x05\x90", "kind"},	      /* syscall */
	{LEAF, 3, "\x0f\x31\x90", "kind"},	      /* rdtsc */
	{LEAF, 3, "\xff\xd0\x90", "depends"},	      /* call *%rax */
	{LEAF, 3, "\xc9\x90\x90", "stack pointer"},   /* leave */
	{LEAF, 3, "\xcc\x90\x90", "kind"},	      /* int3 */
	{LEAF, 3, "\x9c\x9d\x90", "stack pointer"},   /* pushf; popf */
	{TAKEN, 3, "\x48\x89\xf0", NULL},	      /* mov %rsi, %rax */
	{TAKEN, 3, "\x48\x89\xe0", "stack pointer"},  /* mov %rsp, %rax */
	{TAKEN, 3, "\x50\x58\x90", "row"},	      /* push %rax; pop %rax */
	{TAKEN, 3, "\x0f\x05\x90", "kind"},	      /* syscall */
	{TAKEN, 3, "\xff\xd0\x90", "depends"},	      /* call *%rax */
	{TAKEN, 3, "\xcc\x90\x90", "kind"},	      /* int3 */
	{LAST, 3, "\x48\x89\xf0", NULL},	      /* mov %rsi, %rax */
	{LAST, 3, "\x48\x89\xe0", "places"},	      /* mov %rsp, %rax */
	{LAST, 3, "\x9c\x9d\x90", "stack pointer"},   /* pushf; popf */
	{LAST, 3, "\x0f\x0b\x90", "middle"},	      /* ud2 */
	{LAST, 3, "\xc2\x08\x00", "middle"},	      /* ret $8 */
	{LAST, 3, "\xeb\x01\x90", "middle"},	      /* jmp .+3 */
	{LAST, 3, "\x74\x01\x90", "middle"},	      /* je .+3 */
	{CALLER, 5, "\x48\x8d\x74\x24\x10", NULL},    /* lea 16(%rsp), %rsi */
	{CALLER, 5, "\x48\x8d\x74\x24\xf8", "below"}, /* lea -8(%rsp), %rsi */
	{CALLER, 5, "\x48\x89\x74\x24\xf8", "below"}, /* mov %rsi, -8(%rsp) */
	{CALLER, 5, "\x48\x8b\x74\x24\x80", "below"}, /* mov -128(%rsp), %rsi */
	{CALLER, 5, "\x48\x8b\x74\xfc\x08", "below"}, /* mov 8(%rsp,%rdi,8), %rsi */
};

static uint32_t change_all(uint8_t *bytes, size_t size, const struct change *c)
{
	uint32_t nr = 0;

	for (size_t i = c->size; i + 10 <= size; i++)
		if (!memcmp(bytes + i, c->constant, 10)) {
			memcpy(bytes + i - c->size, c->code, c->size);
			nr++;
		}
	return nr;
}

TEST_EACH(verify_wants_a_plain_function_and_a_plain_caller, sizeof(changes) / sizeof(changes[0]))
{
	const struct change *c = &changes[_i];
	struct mp_elf *changed, *output;
	struct mp_err err = {""};
	uint8_t *original;
	struct pair p;
	int rc;

	pair_make(&p, "gcc -pie tests/data/leaf_forged.S", 0, PAIR_INLINED);
	ck_assert_uint_eq(p.report.nr_inlined, 4);
	original = malloc(p.original->size);
	ck_assert_ptr_nonnull(original);
	memcpy(original, p.original->data, p.original->size);
	ck_assert_uint_eq(change_all(original, p.original->size, c), 1);
	/* The copy and two in place of calls, as a patch lies over the old code; of the caller, both */
	ck_assert_uint_eq(change_all(p.bytes, p.size, c), strcmp(c->constant, CALLER) ? 3 : 2);
	ck_assert_int_eq(mp_elf_open_memory("original", original, p.original->size, MP_ELF_ALL,
					    &changed, &err),
			 0);
	pair_name_original(&p, changed);
	ck_assert_int_eq(mp_elf_open_memory("output", p.bytes, p.size, MP_ELF_ALL, &output, &err),
			 0);
	rc = me_verify(changed, output, NULL, &err);
	if (c->word)
		ck_assert_msg(rc == -EBADMSG && strstr(err.msg, c->word), "%d: %s", rc, err.msg);
	else
		ck_assert_msg(rc == 0, "%s", err.msg);
	mp_elf_close(output);
	mp_elf_close(changed);
	free(original);
	pair_free(&p);
}
