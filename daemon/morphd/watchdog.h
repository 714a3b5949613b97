// SPDX-License-Identifier: Apache-2.0
/*
 * watchdog - tells systemd that morphd is making progress, as often as systemd asks for. Called
 * by morphd's main.
 *
 * Decides when a message is due. The caller reports each step of its work. If the daemon hangs
 * in a step, the messages stop and systemd restarts it.
 */
#ifndef MD_WATCHDOG_H
#define MD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct md_watchdog {
	uint64_t pause_ns; /* time between two messages; 0: systemd asks for none */
	uint64_t next_ns;  /* of CLOCK_MONOTONIC */
};

/* Reads $WATCHDOG_USEC, unless $WATCHDOG_PID names another process. */
void md_watchdog_init(struct md_watchdog *watchdog);

/*
 * Return: true if a message is due at @now_ns. Then the next one is due after half of systemd's
 * interval.
 */
bool md_watchdog_is_due(struct md_watchdog *watchdog, uint64_t now_ns);

/* Reports a completed step: sends WATCHDOG=1 if it is due. */
void md_watchdog_step(struct md_watchdog *watchdog);

#endif
