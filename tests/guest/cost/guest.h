/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest - shared by the files of the cost test's program, which is the guest's init and only
 * process.
 */
#ifndef MORPH_TESTS_GUEST_COST_H
#define MORPH_TESTS_GUEST_COST_H

#include <stdint.h>

#include "tests/plugin/mark.h"

/* Sends lines to the host through QEMU's debug port, without buffering or delay in the guest. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sends "FAIL: " and the message, and powers off. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Work during which the kernel's instructions are counted: @nr operations, each announced by
 * MARK_OP.
 */
struct work {
	const char *name;
	void (*run)(unsigned int nr);
	unsigned int nr;
};
extern const struct work works[];

/* A state of the kernel during the work. */
struct state {
	const char *name;
	const char *works; /* names of works, or "all" */
	void (*begin)(void);
	void (*end)(void);
	uint64_t (*samples)(void); /* samples taken so far */
};
extern const struct state states[];

/* Makes the plugin watch the addresses of kernel functions. */
void watch_module(const char *name);
void watch_forget(void);

void module_load(const char *name, const char *params);
void module_unload(const char *name);

#endif
