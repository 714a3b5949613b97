// SPDX-License-Identifier: Apache-2.0
/*
 * await - when a morphd that cannot sample should try again.
 *
 * Looks at the two things that an administrator changes: whether the device of the kernel module is
 * there, and whether the kernel allows events of the whole machine. A look costs a few system calls.
 */
#ifndef MD_AWAIT_H
#define MD_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

struct md_await {
	bool has_device; /* what the last look found */
	bool has_events;
	bool device_came; /* the device was not there when the waiting began */
	uint64_t next_ns; /* of CLOCK_MONOTONIC: try again then, whatever a look finds */
};

/* An attempt has just failed. */
void md_await_start(struct md_await *await);

/* Return: true where another attempt is due; md_await_failed() is to be called if it fails, too. */
bool md_await_is_due(struct md_await *await);

void md_await_failed(struct md_await *await);

/*
 * Return: true where the device came while morphd waited, and morphd may not open the device although
 * the device is morphd's own. systemd decides at the start of a unit which devices the unit may open,
 * so a new start helps.
 */
bool md_await_needs_start(const struct md_await *await);

#endif
