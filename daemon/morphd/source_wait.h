// SPDX-License-Identifier: Apache-2.0
/*
 * source_wait - decides when a morphd that cannot sample tries again. Called by morphd's main.
 *
 * Watches the two things that an administrator can change: whether the kernel module's device
 * exists, and whether the kernel allows system-wide events. One look costs a few system calls.
 */
#ifndef MD_SOURCE_WAIT_H
#define MD_SOURCE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct md_source_wait {
	bool has_device; /* result of the last look */
	bool has_events;
	bool device_appeared; /* the device was missing when the waiting began */
	uint64_t next_ns; /* CLOCK_MONOTONIC; time of the next attempt, even if nothing changed */
};

/* Begins to wait, after an attempt has failed. */
void md_source_wait_start(struct md_source_wait *wait);

/* Return: true if another attempt is due. Call md_source_wait_failed() if that attempt fails. */
bool md_source_wait_is_due(struct md_source_wait *wait);

void md_source_wait_failed(struct md_source_wait *wait);

/*
 * Return: true if the device appeared while morphd waited, belongs to morphd, and still cannot
 * be opened. systemd fixes a unit's devices when the unit starts, so morphd must be restarted.
 */
bool md_source_wait_needs_restart(const struct md_source_wait *wait);

#endif
