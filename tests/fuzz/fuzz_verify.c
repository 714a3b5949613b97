// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_verify - damaged outputs of good programs, through verify: a refusal, or a file whose
 * headers, dynamic section and unchanged data are those of the good output.
 *
 * The first byte chooses the program and whether the file is cut or extended. The rest is a
 * list of changes {u24 offset, u8 value}. The upper bits of an offset select the few bytes that
 * differ from the original's.
 *
 * In the outputs of other programs, functions stand in place of calls of them. There, a change is
 * {u4 what becomes of it, u4 kind, u16 place, u8 what becomes of it}, with the kinds of inlined_output.h: bytes, whole
 * instructions, branches, pieces, notes of calls, rows. What passes is run, and must end like the original.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/verify.h"
#include "tests/support/inlined/inlined_output.h"
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

#define NR_INLINED 4

static const struct {
	const char *command;
	uint64_t seed;
	const char *argument;
} inlined_builds[NR_INLINED] = {
	{"gcc -O2 -fPIE -pie -s tests/data/leaf.c", 3, NULL},
	{"g++ -x c++ -O2 -fPIE -pie -fnon-call-exceptions -g tests/data/leaf.c", 11, NULL},
	{"gcc -O2 -fno-pie -no-pie -Wl,--emit-relocs tests/data/leaf_stack.c", 3, "steps"},
	{"g++ -x c++ -O2 -fPIE -pie -fnon-call-exceptions -s tests/data/leaf_stack.c", 7, "steps"},
};

static struct inlined_output inlined[NR_INLINED];

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
	for (int i = 0; i < NR_INLINED; i++)
		if (!inlined_output_make(&inlined[i], inlined_builds[i].command,
					 inlined_builds[i].argument, inlined_builds[i].seed)) {
			inlined[i].nr_insns = 0;
			fprintf(stderr, "fuzz_verify: does not work: %s\n",
				inlined_builds[i].command);
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

/* Return: does verify accept these bytes as an output of @original? */
static bool passes(const struct mp_elf *original, const uint8_t *bytes, size_t size)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	int ret;

	if (mp_elf_open_memory("changed", bytes, size, MP_ELF_ALL, &elf, &err))
		return false;
	ret = me_verify(original, elf, NULL, &err);
	if (ret && ret != -EBADMSG && ret != -ENOMEM)
		abort();
	if (ret == -EBADMSG && !*err.msg)
		abort();
	mp_elf_close(elf);
	return !ret;
}

static void change_inlined(int which, const uint8_t *data, size_t size)
{
	const struct inlined_output *x = &inlined[which];
	struct inlined_mutant m;

	if (!x->nr_insns)
		return;
	if (!inlined_mutant_init(&m, x)) {
		inlined_mutant_fini(&m);
		return;
	}
	for (; size >= 4; data += 4, size -= 4)
		inlined_mutate(&m, (enum inlined_change)((data[0] & 15) % NR_INLINED_CHANGES),
			       (uint32_t)(data[1] | data[2] << 8),
			       (uint32_t)(data[3] | data[0] >> 4 << 8));
	if (inlined_mutant_finish(&m) && memcmp(m.bytes, x->output.data, x->output.size) != 0 &&
	    passes(x->original, m.bytes, x->output.size) &&
	    !inlined_runs_alike(x, m.bytes, x->output.size)) {
		fprintf(stderr, "passed, and is another program\n");
		abort();
	}
	inlined_mutant_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pair *p;
	size_t length;
	uint8_t *bytes;

	if (!size)
		return 0;
	if (data[0] & 4) {
		change_inlined(data[0] % NR_INLINED, data + 1, size - 1);
		return 0;
	}
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
	if (passes(p->original, bytes, length))
		check_passed(p, bytes, length);
	free(bytes);
	return 0;
}
