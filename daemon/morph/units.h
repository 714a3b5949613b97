// SPDX-License-Identifier: Apache-2.0
/*
 * units - the units of systemd that start morph-worker and the collector: root's, or the user's own. Packages
 * leave the worker's units disabled; `morph on' enables them, and so does the first rule of an administrator.
 * Called by morph_on.c, morph_off.c and morph_watch.c.
 */
#ifndef MD_UNITS_H
#define MD_UNITS_H

#include <stdbool.h>

enum md_units {
	MD_UNITS_NONE,	  /* no systemd, or no such units; or nothing was to be done */
	MD_UNITS_ENABLED, /* they were enabled before */
	MD_UNITS_CHANGED, /* they are as asked now */
	MD_UNITS_FAILED,  /* systemctl could not do it, and has said why */
};

/*
 * md_units_enable - see to it that morph-optimize.timer and .path are enabled and active. @collector: and
 * morphd; without it, nothing is done for a user.
 */
enum md_units md_units_enable(bool collector);
/* Stops the timer and the worker, and waits until the worker has ended. They stay enabled. */
enum md_units md_units_stop(void);
/*
 * Root's morph-fleet-builds.timer installs the builds of a fleet, each hour: it is disabled if it is active. What only
 * sends counts stays.
 */
enum md_units md_units_leave_fleet(void);
/* After that: starts the timer again if it is enabled, or disables it. */
enum md_units md_units_settle(bool again);

#endif
