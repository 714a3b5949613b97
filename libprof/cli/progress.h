// SPDX-License-Identifier: Apache-2.0
/*
 * progress - one line on standard error that tells what a program is doing. It appears only
 * on a terminal, after a second, and is erased at the end. For main() of the programs.
 * There is one line per process; before mp_progress_start() the other functions do nothing.
 */
#ifndef MP_PROGRESS_H
#define MP_PROGRESS_H

#include <stdbool.h>

/*
 * mp_progress_start - @ticks: also show the seconds, by a timer signal each second;
 * programs that measure must not use it. Return: whether there will be a line.
 */
bool mp_progress_start(const char *program, bool ticks);
/* Sets the current activity, which is shown soon. Any bytes are allowed. */
void mp_progress_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Erases the line. To be called before any message, and at the end. */
void mp_progress_stop(void);

#endif
