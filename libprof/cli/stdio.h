// SPDX-License-Identifier: Apache-2.0
/*
 * stdio - handles standard descriptors that are closed, and standard output that cannot be
 * written.
 * For main() of each program; nothing else in the library prints.
 */
#ifndef MP_STDIO_H
#define MP_STDIO_H

/*
 * mp_stdio_init - to be called first in main(). The next opened file would get the number
 * of a closed standard descriptor, and a report could overwrite a database. It opens such a
 * descriptor instead, on which reads and writes fail, and which exec closes. Until
 * mp_stdio_parsed(), exit() reports output that could not be written, as @program, with
 * status 1: argp does not check the output of --help and --version. A limit on the size of
 * files (ulimit -f) makes writes fail with EFBIG, and does not end the program.
 */
void mp_stdio_init(const char *program);
/* The command line is parsed: from now on main() checks standard output itself. */
void mp_stdio_parsed(void);

#endif
