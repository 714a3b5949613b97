// SPDX-License-Identifier: Apache-2.0
/* program - a program of tests/data, compiled by gcc and analysed, for the running test. */
#ifndef MORPH_TESTS_PROGRAM_H
#define MORPH_TESTS_PROGRAM_H

#include "libprof/cfg/cfg.h"
#include "tests/support/compile.h"
#include "tests/unit/suite.h"

static struct mp_elf *elf;
static struct mp_cfg *cfg;

/* Ownership: program_free(). */
static inline void program_build(const char *flags, const char *source)
{
	char path[256];

	ck_assert_int_eq(compile_run("gcc", flags, source, path), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	ck_assert_msg(!mp_cfg_build(elf, NULL, &cfg, &err), "%s", err.msg);
	unlink(path);
}

static inline void program_free(void)
{
	mp_cfg_free(cfg);
	mp_elf_close(elf);
}

static inline uint32_t program_func(const char *name)
{
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (!strcmp(cfg->funcs[f].name, name))
			return f;
	ck_abort_msg("no function %s", name);
}

#endif
