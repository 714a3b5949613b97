// SPDX-License-Identifier: Apache-2.0
/*
 * fleet-delta - what an attacker of a fleet's builds can make, and how two outputs differ.
 *	fleet-delta make ORIGINAL OUTPUT DELTA	the delta that a builder would store
 *	fleet-delta apply ORIGINAL DELTA SIZE OUTPUT	what a host makes of it
 *	fleet-delta mutate OUTPUT SEED MUTANT	changes OUTPUT at one place, and prints how
 *	fleet-delta compare A B	prints "same", "unloaded", "unwind", "data" or "code": the gravest difference
 *		of B to the output A
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/builds/delta.h"
#include "daemon/fleet/whole_file.h"

static int fail(const struct mp_err *err)
{
	fprintf(stderr, "fleet-delta: %s\n", err->msg);
	return 1;
}

static int put(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");
	int bad = !f || fwrite(bytes, 1, size, f) != size;

	if (f && fclose(f))
		bad = 1;
	if (bad)
		perror(path);
	return bad;
}

static int make(char **argv)
{
	struct md_whole_file original, output;
	struct mp_err err;
	uint8_t *delta;
	size_t size;
	int r;

	if (md_whole_file_open(argv[0], &original, &err) ||
	    md_whole_file_open(argv[1], &output, &err) ||
	    md_delta_make(original.bytes, original.size, output.bytes, output.size, &delta, &size,
			  &err))
		return fail(&err);
	r = put(argv[2], delta, size);
	free(delta);
	return r;
}

static int apply(char **argv)
{
	struct md_whole_file original, delta;
	struct mp_err err;
	int fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (fd < 0) {
		perror(argv[3]);
		return 1;
	}
	if (md_whole_file_open(argv[0], &original, &err) ||
	    md_whole_file_open(argv[1], &delta, &err) ||
	    md_delta_apply(original.bytes, original.size, delta.bytes, delta.size, fd,
			   strtoull(argv[2], NULL, 10), &err))
		return fail(&err);
	return close(fd);
}

/* ---- mutate -------------------------------------------------------------------------------- */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

/* Bytes of the file that segments with the flag @flag hold: the last such segment is the added one. */
static int find_segment(const uint8_t *bytes, size_t size, uint32_t flag, int which, size_t *start,
			size_t *length)
{
	const Elf64_Ehdr *ehdr = (const void *)bytes;
	const Elf64_Phdr *phdrs = (const void *)(bytes + ehdr->e_phoff);
	int found = 0;

	if (size < sizeof(*ehdr) || ehdr->e_phoff + ehdr->e_phnum * sizeof(*phdrs) > size)
		return 0;
	for (int i = 0; i < ehdr->e_phnum; i++) {
		if (phdrs[i].p_type != PT_LOAD || !(phdrs[i].p_flags & flag) ||
		    phdrs[i].p_offset + phdrs[i].p_filesz > size || !phdrs[i].p_filesz)
			continue;
		if (found++ < which)
			continue;
		*start = phdrs[i].p_offset;
		*length = phdrs[i].p_filesz;
	}
	return found;
}

/* Half of the mutations are in the code that runs, some in the headers, the others anywhere. */
static size_t choose_place(const uint8_t *bytes, size_t size)
{
	size_t start = 0, length = size;

	switch (draw(8)) {
	case 0:
	case 1:
	case 2: find_segment(bytes, size, PF_X, 99, &start, &length); break;
	case 3: find_segment(bytes, size, PF_X, 0, &start, &length); break;
	case 4: length = size < 4096 ? size : 4096; break;
	default: break;
	}
	return start + draw(length);
}

/* One change. Return: its name. */
static const char *change(uint8_t *bytes, size_t size, size_t at)
{
	size_t room = size - at, nr = 1 + draw(16), from;

	nr = nr < room ? nr : room;
	switch (draw(6)) {
	case 0: bytes[at] ^= (uint8_t)(1 << draw(8)); return "bit";
	case 1: bytes[at] = (uint8_t)(bytes[at] + 1 + draw(255)); return "byte";
	case 2: memset(bytes + at, 0, nr); return "zeros";
	case 3: memset(bytes + at, 0x90, nr); return "no-ops";
	case 4:
		from = draw(size - nr + 1);
		memmove(bytes + at, bytes + from, nr);
		return "copy";
	default:
		for (size_t i = 0; i < nr; i++)
			bytes[at + i] = (uint8_t)draw(256);
		return "random";
	}
}

static int mutate(char **argv)
{
	struct md_whole_file output;
	struct mp_err err;
	const char *how = "";
	uint8_t *bytes;
	size_t at = 0;

	state = strtoull(argv[1], NULL, 10) * 0x2545f4914f6cdd1du;
	if (md_whole_file_open(argv[0], &output, &err))
		return fail(&err);
	bytes = malloc(output.size);
	if (!bytes)
		return 1;
	do {
		memcpy(bytes, output.bytes, output.size);
		at = choose_place(bytes, output.size);
		how = change(bytes, output.size, at);
	} while (!memcmp(bytes, output.bytes, output.size));
	printf("%s at %zu of %zu\n", how, at, output.size);
	return put(argv[2], bytes, output.size);
}

/* ---- compare ------------------------------------------------------------------------------- */

enum part {
	SAME,
	UNLOADED,
	UNWIND, /* .eh_frame, in a segment with code */
	DATA,
	CODE /* instructions, and headers that say what is loaded */
};

static bool is_loaded(const struct md_whole_file *f, size_t at)
{
	const Elf64_Ehdr *ehdr = (const void *)f->bytes;
	const Elf64_Phdr *phdrs = (const void *)(f->bytes + ehdr->e_phoff);

	for (int i = 0; i < ehdr->e_phnum; i++)
		if (phdrs[i].p_type == PT_LOAD && at >= phdrs[i].p_offset &&
		    at < phdrs[i].p_offset + phdrs[i].p_filesz)
			return true;
	return false;
}

/* The headers, but for what only tells of sections. */
static bool is_header(const struct md_whole_file *f, size_t at)
{
	const Elf64_Ehdr *ehdr = (const void *)f->bytes;

	return at < offsetof(Elf64_Ehdr, e_shoff) ||
	       (at >= offsetof(Elf64_Ehdr, e_flags) && at < offsetof(Elf64_Ehdr, e_shentsize)) ||
	       (at >= ehdr->e_phoff && at < ehdr->e_phoff + ehdr->e_phnum * sizeof(Elf64_Phdr));
}

/* @f is an output that morph-optimize wrote. Bytes of segments that no section has count as code. */
static enum part part_of(const struct md_whole_file *f, size_t at)
{
	const Elf64_Ehdr *ehdr = (const void *)f->bytes;
	const Elf64_Shdr *shdrs = (const void *)(f->bytes + ehdr->e_shoff);
	const char *names = (const char *)f->bytes + shdrs[ehdr->e_shstrndx].sh_offset;

	if (is_header(f, at))
		return CODE;
	if (!is_loaded(f, at))
		return UNLOADED;
	for (int i = 0; i < ehdr->e_shnum; i++) {
		if (shdrs[i].sh_type == SHT_NOBITS || at < shdrs[i].sh_offset ||
		    at >= shdrs[i].sh_offset + shdrs[i].sh_size)
			continue;
		if (shdrs[i].sh_flags & SHF_EXECINSTR)
			return CODE;
		return !strcmp(names + shdrs[i].sh_name, ".eh_frame") ? UNWIND : DATA;
	}
	return CODE;
}

static int compare(char **argv)
{
	static const char *const names[] = {"same", "unloaded", "unwind", "data", "code"};
	struct md_whole_file a, b;
	struct mp_err err;
	enum part worst = SAME;

	if (md_whole_file_open(argv[0], &a, &err) || md_whole_file_open(argv[1], &b, &err))
		return fail(&err);
	if (a.size != b.size)
		worst = UNLOADED;
	for (size_t i = 0; i < a.size && i < b.size; i++) {
		enum part now = a.bytes[i] == b.bytes[i] ? SAME : part_of(&a, i);

		worst = now > worst ? now : worst;
	}
	puts(names[worst]);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "make"))
		return make(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "apply"))
		return apply(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "mutate"))
		return mutate(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "compare"))
		return compare(argv + 2);
	fprintf(stderr, "usage: fleet-delta make|apply|mutate|compare ARGUMENT...\n");
	return 2;
}
