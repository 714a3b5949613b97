// SPDX-License-Identifier: Apache-2.0
/*
 * replace_bytes - replaces single bytes of an output, and says what verify accepts. For scripts/check/replace-bytes.
 *
 *	replace-bytes ORIGINAL OUTPUT NUMBER [SEED]
 *
 * Of NUMBER bytes, each second is any byte of the file; the others are spread evenly over the owners of bytes. Each gets
 * another value at random. Prints `OWNER: TRIED ACCEPTED` and, if some were accepted, the owner's reason; and a line
 * for each byte that was accepted without a reason, or against it: then the exit status is 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/mix.h"
#include "editor/verify/verify.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map.h"

struct trial {
	struct mp_elf *original, *output;
	struct mp_map *map;
	struct me_owned *owned;
	size_t nr_owned;
	uint64_t bytes[ME_NR_OWNERS], tried[ME_NR_OWNERS], accepted[ME_NR_OWNERS];
	uint8_t *changed;
	uint64_t nr_bad;
};

static const struct me_owned *owner_at(const struct trial *t, uint64_t off)
{
	size_t lo = 0, hi = t->nr_owned;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->owned[mid].end <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &t->owned[lo];
}

/* The @n-th byte of this owner. */
static uint64_t byte_of(const struct trial *t, uint32_t owner, uint64_t n)
{
	for (size_t i = 0; i < t->nr_owned; i++) {
		uint64_t size = t->owned[i].end - t->owned[i].start;

		if (t->owned[i].owner != owner)
			continue;
		if (n < size)
			return t->owned[i].start + n;
		n -= size;
	}
	return 0;
}

/* Where is decoding of code at @vaddr to begin: at a piece of the map, or a function? 0: nowhere. */
static uint64_t code_start(const struct trial *t, uint64_t vaddr)
{
	uint32_t i = mp_map_piece_at(t->map, vaddr);
	const struct mp_elf *o = t->original;

	if (i < t->map->nr_pieces)
		return mp_map_piece(t->map, i).new_vaddr;
	for (uint32_t k = 0; k < o->nr_fdes; k++)
		if (vaddr - o->fdes[k].start < o->fdes[k].size)
			return o->fdes[k].start;
	return 0;
}

/* Do both words lead to the same code of the original? */
static bool same_place(const struct trial *t, uint64_t a, uint64_t b)
{
	return mp_map_original(t->map, a) == mp_map_original(t->map, b);
}

/* Is the byte in the displacement of a branch or an operand that leads to the same code as before? */
static bool is_same_way(const struct trial *t, uint64_t vaddr)
{
	uint64_t at = code_start(t, vaddr), off;
	struct mp_insn a, b;

	while (at && at <= vaddr) {
		if (!mp_elf_vaddr_to_off(t->output, at, &off) ||
		    mp_insn_decode(t->output->data + off, t->output->size - off, at, &a))
			return false;
		if (vaddr < at + a.len)
			return !mp_insn_decode(t->changed + off, t->output->size - off, at, &b) &&
			       a.len == b.len && a.kind == b.kind && a.target && b.target &&
			       same_place(t, a.target, b.target);
		at += a.len;
	}
	return false;
}

/* Is the byte in a word of 8 bytes that leads to the same code as before? */
static bool is_same_word(const struct trial *t, uint64_t off)
{
	uint64_t a, b, at = off & ~UINT64_C(7);

	memcpy(&a, t->output->data + at, sizeof(a));
	memcpy(&b, t->changed + at, sizeof(b));
	return same_place(t, a, b);
}

static bool is_size_of_symbol(const struct trial *t, uint64_t off)
{
	const struct mp_section *sec = mp_elf_section(t->output, ".symtab");

	return sec && (off - sec->off) % sizeof(Elf64_Sym) >= offsetof(Elf64_Sym, st_size);
}

static bool is_free_field(const struct trial *t, uint64_t off)
{
	uint64_t at = off - t->output->ehdr.e_shoff, field = at % sizeof(Elf64_Shdr) / 8 * 8;
	const struct mp_section *sec = &t->output->sections[at / sizeof(Elf64_Shdr)];

	return (field == offsetof(Elf64_Shdr, sh_size) &&
		!strcmp(sec->name, ".gcc_except_table.morph")) ||
	       (field == offsetof(Elf64_Shdr, sh_offset) && !sec->size);
}

/* Is what was accepted what its owner's reason says? */
static bool is_explained(const struct trial *t, uint64_t off, enum me_owner owner)
{
	uint64_t vaddr;

	if (!me_owner_freedom(owner))
		return false;
	switch (owner) {
	case ME_OWNER_OLD:
	case ME_OWNER_COPY:
		if (mp_elf_off_to_vaddr(t->output, off, &vaddr) && is_same_way(t, vaddr))
			return true;
		return owner == ME_OWNER_OLD && is_same_word(t, off);
	case ME_OWNER_SYMBOLS: return is_size_of_symbol(t, off);
	case ME_OWNER_SHDRS: return is_free_field(t, off);
	default: return true;
	}
}

static int try(struct trial *t, uint64_t off, uint8_t value)
{
	enum me_owner owner = (enum me_owner)owner_at(t, off)->owner;
	struct mp_err err = {""};
	struct mp_elf *elf;
	int rc;

	t->changed[off] = value;
	t->tried[owner]++;
	rc = mp_elf_open_memory("changed", t->changed, t->output->size, MP_ELF_ALL, &elf, &err);
	if (!rc) {
		rc = me_verify(t->original, elf, NULL, &err);
		mp_elf_close(elf);
	}
	t->accepted[owner] += !rc;
	if (!rc && !is_explained(t, off, owner)) {
		printf("accepted: %#x instead of %#x at file offset %#" PRIx64 " (%s)\n", value,
		       t->output->data[off], off, me_owner_name(owner));
		t->nr_bad++;
	}
	t->changed[off] = t->output->data[off];
	return rc == -ENOMEM ? rc : 0;
}

static int try_all(struct trial *t, uint64_t nr, uint64_t seed)
{
	uint32_t owners[ME_NR_OWNERS], nr_owners = 0;
	uint64_t state = seed << 32;
	int rc = 0;

	for (size_t i = 0; i < t->nr_owned; i++)
		t->bytes[t->owned[i].owner] += t->owned[i].end - t->owned[i].start;
	for (uint32_t i = 0; i < ME_NR_OWNERS; i++)
		if (t->bytes[i])
			owners[nr_owners++] = i;
	for (uint64_t i = 0; !rc && i < nr; i++) {
		uint32_t owner = owners[me_next_random(&state) % nr_owners];
		uint64_t off = i % 2 ? byte_of(t, owner, me_next_random(&state) % t->bytes[owner])
				     : me_next_random(&state) % t->output->size;

		rc = try(t, off, (uint8_t)(t->output->data[off] + 1 + me_next_random(&state) % 255));
	}
	return rc;
}

static int open_all(struct trial *t, char **argv, struct mp_err *err)
{
	int rc = mp_elf_open(argv[1], MP_ELF_ALL, &t->original, err);

	if (!rc)
		rc = mp_elf_open(argv[2], MP_ELF_ALL, &t->output, err);
	if (!rc)
		rc = mp_map_read(t->output, &t->map, err);
	if (!rc)
		rc = me_verify_owners(t->original, t->output, &t->owned, &t->nr_owned, err);
	if (rc)
		return rc;
	t->changed = malloc(t->output->size + 8);
	if (!t->changed)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(t->changed, t->output->data, t->output->size);
	return 0;
}

int main(int argc, char **argv)
{
	struct mp_err err = {""};
	struct trial t = {0};
	int rc;

	if (argc < 4) {
		fprintf(stderr, "usage: replace-bytes ORIGINAL OUTPUT NUMBER [SEED]\n");
		return 2;
	}
	rc = open_all(&t, argv, &err);
	if (!rc)
		rc = try_all(&t, strtoull(argv[3], NULL, 10),
			     argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
	if (rc)
		fprintf(stderr, "replace-bytes: %s\n", *err.msg ? err.msg : strerror(-rc));
	for (int i = 0; !rc && i < ME_NR_OWNERS; i++)
		if (t.tried[i])
			printf("%s: %" PRIu64 " %" PRIu64 "%s%s\n", me_owner_name(i), t.tried[i],
			       t.accepted[i], t.accepted[i] ? ": " : "",
			       t.accepted[i] ? me_owner_freedom(i) ? me_owner_freedom(i) : "?"
					     : "");
	mp_map_free(t.map);
	mp_elf_close(t.output);
	mp_elf_close(t.original);
	free(t.owned);
	free(t.changed);
	return rc || t.nr_bad;
}
