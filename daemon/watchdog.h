// SPDX-License-Identifier: Apache-2.0
/*
 * watchdog - tells systemd that morphd gets on with its work, as often as systemd wants it.
 *
 * Decides when a sign of life is due; that there is life the caller knows: it calls after each
 * step of its work, so that a daemon that hangs in one falls silent and is started anew.
 */
#ifndef MD_WATCHDOG_H
#define MD_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct md_watchdog {
	uint64_t pause_ns; /* between two signs of life; 0: nobody waits for one */
	uint64_t next_ns;  /* of CLOCK_MONOTONIC */
};

/* From $WATCHDOG_USEC, if $WATCHDOG_PID names nobody else. */
void md_watchdog_init(struct md_watchdog *watchdog);

/* True where a sign of life is due at @now_ns; then the next one is due half the time later. */
bool md_watchdog_is_due(struct md_watchdog *watchdog, uint64_t now_ns);

/* A step is done: sends WATCHDOG=1 if it is due. */
void md_watchdog_step(struct md_watchdog *watchdog);

#endif
