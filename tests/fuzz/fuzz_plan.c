// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_plan - plans that somebody has changed, of a good program: each is refused, or its output is written and
 * verifies.
 *
 * The input: a byte for the program and the kind; then either eight bytes that choose the changes, or the bits of a
 * plan behind its identity.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/emit/emit.h"
#include "editor/layout/plan_all.h"
#include "editor/optimize/plan_file.h"
#include "editor/verify/verify.h"
#include "tests/support/plan_mutate.h"
#include "tests/support/rewrite.h"

#define NR_PROGRAMS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct program {
	struct rewrite_bytes bytes;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint8_t *movable;
	struct mp_varint_writer plan; /* a good one */
	size_t head;		      /* bytes of its identity */
} programs[NR_PROGRAMS];

static bool save(struct program *p, struct me_plan *plan)
{
	const struct me_plan_file file = {.plan = *plan, .inlines = true};
	struct me_plan_writer *w;
	bool done = !me_plan_check(p->cfg, p->movable, plan, NULL) &&
		    !me_plan_writer_new(p->cfg, &file, &w, NULL);

	if (!done)
		return false;
	done = !me_plan_writer_end(w, NULL, 0, &p->plan, NULL);
	me_plan_writer_free(w);
	p->head = 18 + p->elf->id.build_id_len;
	return done;
}

static bool prepare(struct program *p, const char *command, uint64_t seed)
{
	struct me_plan plan = {0};
	bool done;

	if (!rewrite_compile(command, &p->bytes) ||
	    mp_elf_open_memory("program", p->bytes.data, p->bytes.size, MP_ELF_ALL, &p->elf,
			       NULL) ||
	    mp_cfg_build(p->elf, NULL, &p->cfg, NULL))
		return false;
	p->movable = rewrite_movable(p->cfg);
	if (!p->movable || me_plan_all(p->cfg, p->movable, &seed, &plan, NULL))
		return false;
	done = save(p, &plan);
	me_plan_fini(&plan);
	return done;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const commands[NR_PROGRAMS] = {
		"gcc -O2 -w -Wl,--emit-relocs tests/data/switches.c",
		"gcc -O2 -w -s tests/data/switches.c",
		"g++ -O2 -s tests/data/exceptions.cc",
		"gcc -O2 -w -no-pie -fno-pie -Wl,--emit-relocs tests/data/control.c",
	};

	(void)argc;
	(void)argv;
	for (int i = 0; i < NR_PROGRAMS; i++)
		if (!prepare(&programs[i], commands[i], (uint64_t)i + 1)) {
			programs[i].plan.size = 0;
			fprintf(stderr, "fuzz_plan: does not work: %s\n", commands[i]);
		}
	return 0;
}

static void write_and_verify(const struct program *p, struct me_plan *plan)
{
	struct me_emitted emitted;
	struct rewrite_bytes out;
	struct mp_elf *elf;
	struct mp_err err = {""};
	int rc = rewrite_emit(p->cfg, plan, &emitted, &err);

	if (rc) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	out = rewrite_flatten(&emitted.output);
	me_emitted_fini(&emitted);
	if (!out.data)
		return;
	if (mp_elf_open_memory("output", out.data, out.size, MP_ELF_ALL, &elf, &err) ||
	    me_verify(p->elf, elf, NULL, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	mp_elf_close(elf);
	free(out.data);
}

static void read_plan(const struct program *p, const uint8_t *data, size_t size)
{
	struct me_plan_file file;
	struct mp_err err = {""};
	int rc = me_plan_file_read(p->cfg, p->movable, data, size, &file, &err);

	if (rc && rc != -ENOMEM && (rc != -EBADMSG || !err.msg[0]))
		abort();
	if (rc)
		return;
	if (file.plan.nr_blocks)
		write_and_verify(p, &file.plan);
	me_plan_file_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct program *p;
	struct mp_varint_writer plan = {0};
	uint64_t random = 0;

	if (size < 9)
		return 0;
	p = &programs[data[0] % NR_PROGRAMS];
	if (!p->plan.size)
		return 0;
	if (data[0] & 0x80) {
		mp_varint_put_bytes(&plan, p->plan.bytes, p->head);
		mp_varint_put_bytes(&plan, data + 1, size - 1);
	} else {
		memcpy(&random, data + 1, sizeof(random));
		plan_mutate(p->cfg, p->movable, p->plan.bytes, p->plan.size, random, &plan);
	}
	if (plan.bytes && !plan.failed)
		read_plan(p, plan.bytes, plan.size);
	free(plan.bytes);
	return 0;
}
