// SPDX-License-Identifier: Apache-2.0
// parts: objects
/*
 * fuzz_object - damaged relocatable objects with debug information: each is refused with a message,
 * or rewritten so that verify accepts the new object. Damaged new objects through verify alone.
 *
 * The first byte chooses the object, and which of both is damaged. Then follow changes of 5 bytes:
 * {kind, u24 place, value}. Input that is an ELF file is used as the object.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/layout/plan_all.h"
#include "editor/object/object.h"
#include "editor/verify/object/verify_object.h"
#include "tests/support/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* An object, the plan of a program that was linked from it, and the object that was rewritten by it. */
struct given {
	struct rewrite_bytes object;
	struct me_object_plan plan;
	struct me_bytes good;
};

#define NR_OBJECTS 8

static struct given objects[NR_OBJECTS];

/* Memory of the program and of its analysis stays until the end. */
static bool prepare(const char *compiler, const char *source, struct given *g)
{
	static struct me_plan plans[NR_OBJECTS];
	struct me_plan *made = &plans[g - objects];
	struct me_object_report report = {0};
	struct rewrite_bytes program;
	uint64_t seed = 3;
	uint8_t *movable;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	char command[256];
	struct mp_err err = {""};
	bool good;

	snprintf(command, sizeof(command), "%s -fPIE -c %s", compiler, source);
	if (!rewrite_compile(command, &g->object))
		return false;
	snprintf(command, sizeof(command), "%s -fPIE -pie %s", compiler, source);
	if (!rewrite_compile(command, &program) ||
	    mp_elf_open_memory("program", program.data, program.size, MP_ELF_ALL, &elf, &err) ||
	    mp_cfg_build(elf, &(struct mp_cfg_options){0}, &cfg, &err))
		return false;
	movable = rewrite_movable(cfg);
	good = movable && !me_plan_all(cfg, movable, &seed, made, &err) &&
	       !me_object_plan_init(&g->plan, cfg, NULL, made, &err) &&
	       !me_object_rewrite(g->object.data, g->object.size, &g->plan, &report, &g->good,
				  &err);
	free(movable);
	me_object_report_fini(&report);
	return good;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const given[NR_OBJECTS][2] = {
		{"g++ -w -O2 -gdwarf-5", "tests/data/scopes.cc"},
		{"g++ -w -O2 -gdwarf-4 -ffunction-sections", "tests/data/scopes.cc"},
		{"clang++ -w -O2 -gdwarf-5", "tests/data/scopes.cc"},
		{"g++ -w -O2 -gdwarf-3", "tests/data/scopes.cc"},
		{"g++ -w -O2 -gdwarf-5", "tests/data/exceptions.cc"},
		{"clang -w -O2 -gdwarf-4 -ffunction-sections", "tests/data/switches.c"},
		{"gcc -w -O2 -gdwarf-2", "tests/data/leaf.c"},
		{"g++ -w -O2 -gdwarf-5 -fdebug-types-section", "tests/data/scopes.cc"},
	};

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_OBJECTS; i++) {
		if (!prepare(given[i][0], given[i][1], &objects[i])) {
			fprintf(stderr, "fuzz_object: does not work: %s %s\n", given[i][0],
				given[i][1]);
			objects[i].good.size = 0;
		}
	}
	return 0;
}

enum change {
	CHANGE_DEBUG,	   /* a byte of a section .debug_* */
	CHANGE_DEBUG_WORD, /* four bytes of one */
	CHANGE_RELOCS,	   /* a byte of the relocations of one */
	CHANGE_HEADER,	   /* a byte of a section header */
	CHANGE_ANYWHERE,
	CHANGE_SIZE, /* the file ends here */
	NR_CHANGES
};

static bool is_debug(const uint8_t *bytes, size_t size, const Elf64_Shdr *headers,
		     const Elf64_Ehdr *h, const Elf64_Shdr *s)
{
	uint64_t name = headers[h->e_shstrndx].sh_offset + s->sh_name;

	return name + 8 < size && !memcmp(bytes + name, ".debug_", 7);
}

/* Return: byte number @off of all sections of a kind, which count as one sequence; NULL: none. */
static uint8_t *byte_of(uint8_t *bytes, const struct rewrite_bytes *whole, bool relocs,
			uint64_t off)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)whole->data;
	const Elf64_Shdr *headers = (const Elf64_Shdr *)(whole->data + h->e_shoff);
	uint64_t total = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 1; i < h->e_shnum; i++) {
			const Elf64_Shdr *s = &headers[i];
			const Elf64_Shdr *of =
				relocs && s->sh_type == SHT_RELA ? &headers[s->sh_info] : s;

			if (relocs != (s->sh_type == SHT_RELA) ||
			    !is_debug(whole->data, whole->size, headers, h, of))
				continue;
			if (!pass)
				total += s->sh_size;
			else if (off < s->sh_size)
				return bytes + s->sh_offset + off;
			else
				off -= s->sh_size;
		}
		if (!total)
			return NULL;
		if (!pass)
			off %= total;
	}
	return NULL;
}

/* @whole: the object before all changes, by which places are found. */
static void change(const struct rewrite_bytes *whole, uint8_t *bytes, size_t *size,
		   const uint8_t *change)
{
	uint64_t off = (uint64_t)(change[1] | change[2] << 8 | change[3] << 16);
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)whole->data;
	uint8_t *at = NULL;

	switch (change[0] % NR_CHANGES) {
	case CHANGE_DEBUG: at = byte_of(bytes, whole, false, off); break;
	case CHANGE_DEBUG_WORD:
		at = byte_of(bytes, whole, false, off);
		if (at && bytes + whole->size - at >= 4)
			memset(at, change[4], 4);
		break;
	case CHANGE_RELOCS: at = byte_of(bytes, whole, true, off); break;
	case CHANGE_HEADER:
		at = bytes + h->e_shoff + off % ((uint64_t)h->e_shnum * sizeof(Elf64_Shdr));
		break;
	case CHANGE_SIZE: *size = off % whole->size; break;
	default: at = bytes + off % whole->size; break;
	}
	if (at)
		*at = change[4];
}

static void try_object(const uint8_t *bytes, size_t size, const struct me_object_plan *plan)
{
	struct me_object_report report = {0};
	struct me_bytes out = {0};
	struct mp_err err = {""};
	int rc = me_object_rewrite(bytes, size, plan, &report, &out, &err);

	if (rc && !*err.msg)
		abort();
	/* The writer had it verified; the command would verify the files again. */
	if (!rc && me_verify_object(bytes, size, out.data, out.size, NULL, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	me_object_report_fini(&report);
	me_bytes_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct given *g = &objects[size ? data[0] % NR_OBJECTS : 0];
	struct rewrite_bytes whole = g->object;
	bool new = size &&data[0] >= 0xc0;
	struct mp_err err = {""};
	uint8_t *copy, *exact;
	size_t left;

	if (!size || !g->good.size)
		return 0;
	if (size >= sizeof(Elf64_Ehdr) && !memcmp(data, ELFMAG, SELFMAG)) {
		try_object(data, size, &objects[0].plan);
		return 0;
	}
	if (new)
		whole = (struct rewrite_bytes){g->good.data, g->good.size};
	copy = malloc(whole.size);
	if (!copy)
		return 0;
	memcpy(copy, whole.data, whole.size);
	left = whole.size;
	for (data++, size--; size >= 5; data += 5, size -= 5)
		change(&whole, copy, &left, data);
	/* As large as the file, so that a read behind its end is found. */
	exact = realloc(copy, left ? left : 1);
	if (exact)
		copy = exact;
	if (!new)
		try_object(copy, left, &g->plan);
	else if (me_verify_object(g->object.data, g->object.size, copy, left, NULL, &err) &&
		 !*err.msg)
		abort();
	free(copy);
	return 0;
}
