// SPDX-License-Identifier: Apache-2.0
/*
 * rewrite - runs the whole editor in memory, like morph-optimize, for tests that rewrite very
 * often.
 */
#ifndef MORPH_TESTS_REWRITE_H
#define MORPH_TESTS_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/emit/emit.h"
#include "editor/place/output_parts.h"
#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"

struct rewrite_bytes {
	uint8_t *data; /* Ownership: free() */
	size_t size;
};

/* Runs `@command -o FILE` and reads FILE. Return: false: it failed. */
bool rewrite_compile(const char *command, struct rewrite_bytes *out);
/* Return: the bytes of the file that @output describes; data is NULL without memory. */
struct rewrite_bytes rewrite_flatten(const struct me_output_parts *output);
/* Return: one byte per function of @cfg: may it move? NULL: none may. Ownership: free(). */
uint8_t *rewrite_movable(const struct mp_cfg *cfg);
/* Chooses the addresses that change with the copies of @plan, which is then complete. */
int rewrite_redirect(const struct mp_cfg *cfg, struct me_plan *plan, struct mp_err *err);
/* As me_emitter_new() and me_emitter_write(). */
int rewrite_emit_with_debug_file(const struct mp_cfg *cfg, const struct me_plan *plan,
				 const struct me_instrumentation *added, const struct mp_elf *debug,
				 const char *name, struct me_emitted *out, struct mp_err *err);
/* Completes @plan, and emits it, with or without stubs. */
int rewrite_emit_instrumented(const struct mp_cfg *cfg, struct me_plan *plan,
			      const struct me_instrumentation *added, struct me_emitted *out,
			      struct mp_err *err);
int rewrite_emit(const struct mp_cfg *cfg, struct me_plan *plan, struct me_emitted *out,
		 struct mp_err *err);
/*
 * Rewrites like morph-optimize --all. @seed: use a difficult random order; NULL: the usual one.
 * Return: false: refused.
 */
bool rewrite_all(const struct mp_elf *elf, const uint64_t *seed, struct rewrite_bytes *out);

#endif
