/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest - what the files of the cost test's program share. It is the guest's init, all alone there.
 */
#ifndef MORPH_TESTS_GUEST_COST_H
#define MORPH_TESTS_GUEST_COST_H

#include <stdint.h>

#include "tests/plugin/mark.h"

/* Lines for the host, through QEMU's debug port; nothing in the guest buffers or delays them. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same after "FAIL: ", and the end of the machine. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* What is done while the kernel's instructions are counted: @nr times, each told by MARK_OP. */
struct work {
	const char *name;
	void (*run)(unsigned int nr);
	unsigned int nr;
};
extern const struct work works[];

/* What the kernel has been made to do meanwhile. */
struct state {
	const char *name;
	const char *works; /* names of works, or "all" */
	void (*begin)(void);
	void (*end)(void);
	uint64_t (*samples)(void); /* that it has taken so far */
};
extern const struct state states[];

/* Addresses of the kernel's functions, for the plugin to watch. */
void watch_module(const char *name);
void watch_forget(void);

void module_load(const char *name, const char *params);
void module_unload(const char *name);

#endif
