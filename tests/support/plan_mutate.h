// SPDX-License-Identifier: Apache-2.0
/* plan_mutate - plans of a program that somebody has changed, for tests of those who read them. */
#ifndef MORPH_TESTS_PLAN_MUTATE_H
#define MORPH_TESTS_PLAN_MUTATE_H

#include "editor/optimize/plan_file.h"

/*
 * plan_mutate - changes the plan in @data, which is good, in some ways that @random chooses: of its blocks, their order
 * and fields, of its calls and settings, of its bytes. The result may be good as well. Return: false: out of memory.
 * Ownership: free(@out->bytes).
 */
bool plan_mutate(const struct mp_cfg *cfg, const uint8_t *movable, const uint8_t *data, size_t size,
		 uint64_t random, struct mp_varint_writer *out);

#endif
