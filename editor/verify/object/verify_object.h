// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object - is a rewritten relocatable object the same code as the original?
 *
 * Walks over both objects at the same time, from the symbols and from every relocation that leads
 * to code. There is no table that says which code is whose copy. Documentation/verify.md states
 * what this proves. Called by editor/object/ before anything is written, and by cli.
 */
#ifndef ME_VERIFY_OBJECT_H
#define ME_VERIFY_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct me_verify_object_report {
	uint32_t nr_objects, nr_same; /* compared; equal byte by byte */
	uint64_t nr_insns;	      /* instructions of the original that were compared */
	uint64_t nr_references;	      /* relocations that lead to code */
	uint64_t nr_rows;	      /* unwind rows that were compared */
};

/* Return: 0, -EPERM: not the same program, -ENOMEM. Adds to @report unless it is NULL. */
int me_verify_object(const uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size,
		     struct me_verify_object_report *report, struct mp_err *err);
/* The same for two files: objects, or archives with the same members. */
int me_verify_object_files(const char *old, const char *new, struct me_verify_object_report *report,
			   struct mp_err *err);

#endif
