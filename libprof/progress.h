// SPDX-License-Identifier: Apache-2.0
/*
 * progress - one line on standard error that says what takes so long: only on a terminal, only
 * past a second, and gone at the end. For main() of the programs; there is one of it, and where it
 * was not started all of this does nothing.
 */
#ifndef MP_PROGRESS_H
#define MP_PROGRESS_H

#include <stdbool.h>

/*
 * mp_progress_start - @ticks: show the seconds, too, by a timer's signal once a second; not for
 * who measures. Return: whether there will be a line.
 */
bool mp_progress_start(const char *program, bool ticks);
/* What is being done now; shown soon. Any bytes. */
void mp_progress_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Erase the line; before any message, and at the end. */
void mp_progress_stop(void);

#endif
