// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_optimize - damaged relinkable programs through the whole editor, in memory: a refusal, or an
 * output that verifies; and damaged outputs through verify: a refusal, or no difference that counts.
 *
 * The input is a list of changes {u24 offset, u8 value} to a program that is compiled when the fuzzer
 * starts; the first byte says to which of both files. What is no such list is taken as an ELF file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/eligible.h"
#include "editor/emit.h"
#include "editor/plan_all.h"
#include "editor/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct bytes {
	uint8_t *data;
	size_t size;
};

static struct bytes program, output;

static struct bytes flatten(const struct me_image *image)
{
	struct bytes b = {calloc(1, image->size_bytes), image->size_bytes};

	for (uint32_t i = 0; b.data && i < image->nr_parts; i++)
		memcpy(b.data + image->parts[i].off, image->parts[i].bytes, image->parts[i].size);
	return b;
}

/* What morph-optimize --all does, without files. Return: false where it refuses. */
static bool optimise(const struct mp_elf *elf, struct bytes *out)
{
	struct me_eligible eligible = {0};
	struct me_emitted emitted = {0};
	struct me_plan plan = {0};
	struct mp_cfg *cfg = NULL;
	struct mp_err err;
	uint8_t *movable = NULL;
	uint64_t seed = 3;
	bool done = false;

	if (me_eligible_file(elf, &err) || mp_cfg_build(elf, NULL, &cfg, &err) ||
	    me_eligible_functions(cfg, 1, &eligible, &err))
		goto out;
	movable = malloc(cfg->nr_funcs + 1);
	for (uint32_t f = 0; movable && f < cfg->nr_funcs; f++)
		movable[f] = eligible.verdict[f] == ME_ELIGIBLE;
	if (!movable || me_plan_all(cfg, movable, &seed, &plan, &err) || !plan.nr_blocks ||
	    me_emit(cfg, &plan, &emitted, &err))
		goto out;
	*out = flatten(&emitted.image);
	done = out->data != NULL;
	me_emitted_fini(&emitted);
out:
	me_plan_fini(&plan);
	me_eligible_fini(&eligible);
	mp_cfg_free(cfg);
	free(movable);
	return done;
}

static void verify(const struct mp_elf *original, const struct bytes *b)
{
	struct mp_elf *elf;
	struct mp_err err = {""};
	int ret;

	if (mp_elf_open_memory("output", b->data, b->size, MP_ELF_ALL, &elf, &err))
		return;
	ret = me_verify(original, elf, NULL, &err);
	if (ret && ret != -EBADMSG && ret != -ENOMEM)
		abort();
	if (ret == -EBADMSG && !*err.msg)
		abort();
	mp_elf_close(elf);
}

static void try_original(const struct bytes *b)
{
	struct bytes out = {0};
	struct mp_elf *elf;
	struct mp_err err;

	if (mp_elf_open_memory("input", b->data, b->size, MP_ELF_ALL, &elf, &err))
		return;
	if (optimise(elf, &out))
		verify(elf, &out);
	mp_elf_close(elf);
	free(out.data);
}

static void try_output(const struct bytes *b)
{
	struct mp_elf *elf;
	struct mp_err err;

	if (mp_elf_open_memory("program", program.data, program.size, MP_ELF_ALL, &elf, &err))
		return;
	verify(elf, b);
	mp_elf_close(elf);
}

static struct bytes changed(const struct bytes *base, const uint8_t *data, size_t size)
{
	struct bytes b = {malloc(base->size), base->size};

	if (!b.data)
		return b;
	memcpy(b.data, base->data, base->size);
	for (; size >= 4; data += 4, size -= 4)
		b.data[(data[0] | data[1] << 8 | data[2] << 16) % base->size] = data[3];
	return b;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[] = "/tmp/morph-fuzz-XXXXXX", command[256];
	int fd = mkstemp(path);
	struct mp_elf *elf;
	struct mp_err err;
	FILE *file;

	(void)argc;
	(void)argv;
	if (fd < 0)
		return 0;
	close(fd);
	snprintf(command, sizeof(command),
		 "g++ -O1 -Wl,--emit-relocs -o %s tests/data/exceptions.cc 2>/dev/null || "
		 "gcc -O1 -Wl,--emit-relocs -o %s tests/data/control.c 2>/dev/null",
		 path, path);
	file = system(command) == 0 ? fopen(path, "rb") : NULL;
	if (file) {
		fseek(file, 0, SEEK_END);
		program.size = (size_t)ftell(file);
		rewind(file);
		program.data = malloc(program.size);
		if (!program.data || fread(program.data, 1, program.size, file) != program.size)
			program.size = 0;
		fclose(file);
	}
	unlink(path);
	if (program.size &&
	    !mp_elf_open_memory(path, program.data, program.size, MP_ELF_ALL, &elf, &err)) {
		if (!optimise(elf, &output))
			output.size = 0;
		mp_elf_close(elf);
	}
	if (!output.size)
		fprintf(stderr, "fuzz_optimize: no compiler: only whole files are tried\n");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {NULL, 0};

	if (!output.size || (size >= 4 && !memcmp(data, "\177ELF", 4))) {
		struct bytes whole = {(uint8_t *)(uintptr_t)data, size};

		try_original(&whole);
		return 0;
	}
	if (!size)
		return 0;
	b = changed(data[0] & 1 ? &output : &program, data + 1, size - 1);
	if (b.data && data[0] & 1)
		try_output(&b);
	else if (b.data)
		try_original(&b);
	free(b.data);
	return 0;
}
