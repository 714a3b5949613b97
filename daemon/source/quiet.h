// SPDX-License-Identifier: Apache-2.0
/*
 * quiet - how long a source of the whole machine waits for records while nothing happens. Called by the
 * sources before each wait.
 */
#ifndef MD_QUIET_H
#define MD_QUIET_H

#include <stdbool.h>

/*
 * A wake-up costs more than the samples of a tenth of a second. Files must be looked up before they may be
 * gone, but only if programs are started or files are mapped. The first quiet round lasts MD_QUIET_MS, and
 * each that follows twice as long, up to MD_QUIET_LONGEST_MS: on an idle machine that is one wake-up a
 * second. A program that starts then, ends within this time, and whose file is removed, stays without a
 * name; full rings wake the source earlier.
 */
#define MD_QUIET_MS	    250
#define MD_QUIET_LONGEST_MS 1000

/*
 * md_quiet_wait - @quiet: the last round had only samples. @quiet_ms: the last quiet wait, 0 at first.
 * Return: milliseconds to wait: @timeout_ms, or more if it is quiet and @timeout_ms is positive.
 */
int md_quiet_wait(int *quiet_ms, bool quiet, int timeout_ms);

#endif
