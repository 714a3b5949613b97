// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_verify - damaged outputs of good programs, through verify: a refusal, or a file whose
 * headers, dynamic section and unchanged data are those of the good output.
 *
 * The first byte chooses the program and whether the file is cut or extended. The rest is a
 * list of changes {u24 offset, u8 value}. The upper bits of an offset select the few bytes that
 * differ from the original's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/verify.h"
#include "tests/support/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MUTANTS	 "g++ -O2 -Wl,-z,noseparate-code tests/data/mutants.cc"
#define NR_PAIRS 4

struct pair {
	struct rewrite_bytes program, output;
	struct mp_elf *original, *good;
	uint32_t *changed; /* offsets where the output differs from the program */
	uint32_t nr_changed;
};

static struct pair pairs[NR_PAIRS];

static bool prepare(struct pair *p, const char *command, const uint64_t *seed)
{
	struct mp_err err;

	if (!rewrite_compile(command, &p->program) ||
	    mp_elf_open_memory("program", p->program.data, p->program.size, MP_ELF_ALL,
			       &p->original, &err) ||
	    !rewrite_all(p->original, seed, &p->output) ||
	    mp_elf_open_memory("output", p->output.data, p->output.size, MP_ELF_ALL, &p->good,
			       &err) ||
	    me_verify(p->original, p->good, NULL, &err))
		return false;
	p->changed = malloc(p->output.size * sizeof(*p->changed));
	for (uint32_t i = 0; p->changed && i < p->output.size; i++)
		if (i >= p->program.size || p->program.data[i] != p->output.data[i])
			p->changed[p->nr_changed++] = i;
	return p->nr_changed;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const commands[NR_PAIRS] = {
		MUTANTS " -fPIE -pie -Wl,--emit-relocs",
		MUTANTS " -fPIE -pie -s",
		MUTANTS " -fno-pie -no-pie -Wl,--emit-relocs",
		MUTANTS " -fno-pie -no-pie -s",
	};
	static const uint64_t seed = 3;

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_PAIRS; i++)
		if (!prepare(&pairs[i], commands[i], i < 3 ? &seed : NULL)) {
			pairs[i].nr_changed = 0;
			fprintf(stderr, "fuzz_verify: does not work: %s\n", commands[i]);
		}
	return 0;
}

/* ---- what must not pass ----------------------------------------------------------------------- */

static bool is_in(const struct mp_section *sec, uint64_t off)
{
	return sec && sec->type != SHT_NOBITS && off - sec->off < sec->size;
}

/*
 * Return: true for mapped data of the original that the editor did not change: it must be
 * unchanged. The build-id is only a name. New data may have several encodings.
 */
static bool must_stay(const struct pair *p, uint64_t off)
{
	const struct mp_elf *good = p->good, *original = p->original;

	if (off < sizeof(Elf64_Ehdr) ||
	    off - good->ehdr.e_phoff < good->nr_phdrs * sizeof(Elf64_Phdr) ||
	    is_in(mp_elf_section(good, ".dynamic"), off))
		return true;
	if (off >= p->program.size || p->program.data[off] != p->output.data[off] ||
	    is_in(mp_elf_section(original, ".note.gnu.build-id"), off))
		return false;
	for (uint32_t i = 1; i < original->nr_sections; i++)
		if (is_in(&original->sections[i], off))
			return (original->sections[i].flags & SHF_ALLOC) &&
			       !(original->sections[i].flags & SHF_EXECINSTR);
	return false;
}

static void check_passed(const struct pair *p, const uint8_t *bytes, size_t size)
{
	for (size_t off = 0; off < p->output.size; off++) {
		if ((off < size && bytes[off] == p->output.data[off]) || !must_stay(p, off))
			continue;
		fprintf(stderr, "passed with another byte at %#zx\n", off);
		abort();
	}
}

static void verify(const struct pair *p, const uint8_t *bytes, size_t size)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	int ret;

	if (mp_elf_open_memory("changed", bytes, size, MP_ELF_ALL, &elf, &err))
		return;
	ret = me_verify(p->original, elf, NULL, &err);
	if (ret && ret != -EBADMSG && ret != -ENOMEM)
		abort();
	if (ret == -EBADMSG && !*err.msg)
		abort();
	if (!ret)
		check_passed(p, bytes, size);
	mp_elf_close(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pair *p;
	size_t length;
	uint8_t *bytes;

	if (!size)
		return 0;
	p = &pairs[data[0] % NR_PAIRS];
	if (!p->nr_changed)
		return 0;
	length = p->output.size;
	if (data[0] >= 0xf0 && size > 2) {
		length += (data[1] << 8 | data[2]) - 0x8000;
		data += 2;
		size -= 2;
	}
	if (length > p->output.size + 0x8000)
		return 0; /* the file would have a negative size */
	bytes = calloc(1, length + 1);
	if (!bytes)
		return 0;
	memcpy(bytes, p->output.data, length < p->output.size ? length : p->output.size);
	for (data++, size--; size >= 4; data += 4, size -= 4) {
		uint32_t off = (uint32_t)(data[0] | data[1] << 8 | data[2] << 16);

		off = off >> 23 ? off % p->output.size : p->changed[off % p->nr_changed];
		if (off < length)
			bytes[off] = data[3];
	}
	verify(p, bytes, length);
	free(bytes);
	return 0;
}
