// SPDX-License-Identifier: Apache-2.0
/*
 * await - decides when a morphd that cannot sample tries again. Called by morphd's main.
 *
 * Watches the two things that an administrator can change: whether the kernel module's device
 * exists, and whether the kernel allows system-wide events. One look costs a few system calls.
 */
#ifndef MD_AWAIT_H
#define MD_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

struct md_await {
	bool has_device; /* result of the last look */
	bool has_events;
	bool device_came; /* the device was missing when the waiting began */
	uint64_t next_ns; /* CLOCK_MONOTONIC; time of the next attempt, even if nothing changed */
};

/* Begins to wait, after an attempt has failed. */
void md_await_start(struct md_await *await);

/* Return: true if another attempt is due. Call md_await_failed() if that attempt fails. */
bool md_await_is_due(struct md_await *await);

void md_await_failed(struct md_await *await);

/*
 * Return: true if the device appeared while morphd waited, belongs to morphd, and still cannot
 * be opened. systemd fixes a unit's devices when the unit starts, so morphd must be restarted.
 */
bool md_await_needs_start(const struct md_await *await);

#endif
