// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_label - labels whose differences stand in data keep their values: verify refuses others. The editor
 * changes no such label, so the differences are written into the data of a good pair, in the original and the output
 * alike.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "tests/unit/verify_pair.h"

#define NR_LABELS 4

static uint64_t address_of(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (elf->symbols[i].name && !strncmp(elf->symbols[i].name, name, strlen(name)))
			return elf->symbols[i].vaddr;
	ck_abort_msg("no symbol %s", name);
	return 0;
}

/* Return: the value that the word at @vaddr has while the program runs. */
static uint64_t word_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_reloc *rel = mp_elf_dyn_reloc_at(elf, vaddr);
	const uint8_t *bytes = mp_elf_bytes(elf, vaddr, 8);
	uint64_t word;

	if (rel)
		return (uint64_t)rel->addend;
	ck_assert_ptr_nonnull(bytes);
	memcpy(&word, bytes, sizeof(word));
	return word;
}

static uint8_t *changed(const struct mp_elf *elf, uint64_t vaddr, const int32_t *words)
{
	uint8_t *bytes = malloc(elf->size);
	uint64_t off;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, elf->data, elf->size);
	ck_assert(mp_elf_vaddr_to_off(elf, vaddr, &off));
	memcpy(bytes + off, words, NR_LABELS * sizeof(*words));
	return bytes;
}

TEST_EACH(verify_refuses_changed_labels_whose_differences_the_function_names, 2)
{
	static const char *const modes[] = {"-fPIE -pie", "-fno-pie -no-pie -Wl,--emit-relocs"};
	int32_t words[NR_LABELS];
	uint8_t *original, *output;
	struct mp_err err = {""};
	struct mp_elf *o, *n;
	uint64_t labels, numbers;
	char line[200];
	struct pair p;

	snprintf(line, sizeof(line), "gcc -O2 -fno-reorder-blocks-and-partition %s %s", modes[_i],
		 "tests/data/labels/label_numbers.c");
	pair_build_as_it_is(&p, line, 1);
	labels = address_of(p.original, "labels");
	numbers = address_of(p.original, "numbers");
	ck_assert_uint_ne(word_at(p.original, labels), word_at(p.good, labels));
	for (unsigned int i = 0; i < NR_LABELS; i++)
		words[i] = (int32_t)(word_at(p.original, labels + 8 * i) -
				     word_at(p.original, labels));
	original = changed(p.original, numbers, words);
	output = changed(p.good, numbers, words);
	ck_assert_int_eq(mp_elf_open_memory("o", original, p.original->size, MP_ELF_ALL, &o, &err),
			 0);
	ck_assert_int_eq(mp_elf_open_memory("n", output, p.size, MP_ELF_ALL, &n, &err), 0);
	ck_assert_msg(me_verify(o, n, NULL, &err) == -EBADMSG, "%s: accepted", line);
	ck_assert_msg(strstr(err.msg, "0x") != NULL, "'%s'", err.msg);
	mp_elf_close(o);
	mp_elf_close(n);
	free(original);
	free(output);
	pair_free(&p);
}
