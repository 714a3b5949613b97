// SPDX-License-Identifier: Apache-2.0
/*
 * stdio - handles standard descriptors that are closed, standard output that cannot be written, and names that
 * could harm a terminal.
 * For main() of each program; nothing else in the library prints.
 */
#ifndef MP_STDIO_H
#define MP_STDIO_H

#include <stdbool.h>

/*
 * mp_stdio_init - to be called first in main(). The next opened file would get the number
 * of a closed standard descriptor, and a report could overwrite a database. It opens such a
 * descriptor instead, on which reads and writes fail, and which exec closes. Until
 * mp_stdio_parsed(), exit() reports output that could not be written, as @program, with
 * status 1: argp does not check the output of --help and --version. A limit on the size of
 * files (ulimit -f) makes writes fail with EFBIG, and does not end the program.
 */
void mp_stdio_init(const char *program);
/*
 * After mp_stdio_init(), control characters in text on standard output and standard error, other than ends of
 * lines and tabs, are escaped (mp_text_filter()): names of files, functions and processes may come from anybody.
 * mp_stdio_raw - what follows on standard output is @raw: bytes of a format, or colours of this program's.
 */
void mp_stdio_raw(bool raw);
/* The command line is parsed: from now on main() checks standard output itself. */
void mp_stdio_parsed(void);

#endif
