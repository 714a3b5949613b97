// SPDX-License-Identifier: Apache-2.0
/* program - how every program begins: its name, its version, its standard descriptors. */
#ifndef MP_PROGRAM_H
#define MP_PROGRAM_H

/* To be called in main(), before anything is opened. @name must stay valid. See mp_stdio_init(). */
void mp_program_init(const char *name);
/* "unknown" if the build did not say which. */
const char *mp_program_version(void);

#endif
