// SPDX-License-Identifier: Apache-2.0
/*
 * interrupt - SIGINT, SIGTERM and SIGHUP end a command of morph-stats at once, but leave nothing
 * half-written: they wait until a database is closed, and take temporary files with them.
 */
#ifndef MD_INTERRUPT_H
#define MD_INTERRUPT_H

#include <signal.h>

/* Let them wait, and let them come again. */
void md_interrupt_hold(sigset_t *before);
void md_interrupt_release(const sigset_t *before);

/*
 * md_interrupt_unlinks - the temporary file @path, and what SQLite may put beside it,
 * are removed when a signal ends us. One at a time; NULL: none any more.
 */
void md_interrupt_unlinks(const char *path);

#endif
