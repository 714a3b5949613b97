// SPDX-License-Identifier: Apache-2.0
/*
 * stdio - the three descriptors that a program is born with, when one of them is closed or its
 * disk is full. For main() of each program; nothing else of the library prints.
 */
#ifndef MP_STDIO_H
#define MP_STDIO_H

/*
 * mp_stdio_init - first thing in main(). A closed descriptor would be given to the next file that
 * is opened, and a report would end up in a database: it is made one that fails instead, and that
 * is closed again for who is executed. From here until mp_stdio_parsed(), exit() with output that
 * could not be written says so as @program and makes the status 1: that is what --help and
 * --version of argp do not see to.
 */
void mp_stdio_init(const char *program);
/* The command line is parsed: from here on main() looks after standard output itself. */
void mp_stdio_parsed(void);

#endif
