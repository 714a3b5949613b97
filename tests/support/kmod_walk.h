/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kmod_walk - the kernel module's walker, compiled for user space: it reads memory and finds rows
 * through the reference walker's operations. Used by unit tests, fuzzers and process_walk.
 */
#ifndef TESTS_KMOD_WALK_H
#define TESTS_KMOD_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/morph_abi.h"
#include "libprof/unwind/walk.h"

#define KMOD_WALK_MAX 127

/* One thread's last walk, and what its modules' rows were checked to be. */
struct kmod_walk;

struct kmod_walk_result {
	enum morph_stack_stop stop;
	uint32_t nr, nr_old, nr_read;
	bool is_aged;
	uint64_t ips[KMOD_WALK_MAX];
};

struct kmod_walk *kmod_walk_new(void);
void kmod_walk_free(struct kmod_walk *walk);
/* The next walk compares ages, but uses no earlier frame: mappings or rows have changed. */
void kmod_walk_change_code(struct kmod_walk *walk);
/* Rows may have been freed: checks all again. */
void kmod_walk_forget_rows(struct kmod_walk *walk);
/* @max: at most KMOD_WALK_MAX callers. */
void kmod_walk_run(struct kmod_walk *walk, const struct mp_walk_ops *ops,
		   const struct mp_walk_start *start, uint32_t max, struct kmod_walk_result *out);

/* Return: 0, -EBADMSG: what the module's check says about a table of rows. */
int kmod_rows_check(const void *bytes, size_t size);
/* If the module accepts the bytes, looks up each address around each row. */
void kmod_rows_try(const void *bytes, size_t size);
/* Return: the rule that the module finds for @vaddr in sound rows; NULL: none. */
const void *kmod_rows_find(const void *bytes, size_t size, uint64_t vaddr);

#endif
