// SPDX-License-Identifier: Apache-2.0
/*
 * interrupt - lets SIGINT, SIGTERM and SIGHUP end a command of morph-stats without a
 * half-written result. Signals wait until a database is closed, and the handler removes
 * temporary files.
 */
#ifndef MD_INTERRUPT_H
#define MD_INTERRUPT_H

#include <signal.h>

/* Blocks these signals, and restores the mask. */
void md_interrupt_hold(sigset_t *before);
void md_interrupt_release(const sigset_t *before);

/*
 * md_interrupt_unlinks - remove the temporary file @path, and SQLite's files beside it, if a
 * signal ends the program. Only one file at a time; NULL: none.
 */
void md_interrupt_unlinks(const char *path);
/* Removes that file now. For a signal handler that ends the program. */
void md_interrupt_remove(void);

#endif
