// SPDX-License-Identifier: Apache-2.0
/* rate - sampling rates that several programs must know. */
#ifndef MP_RATE_H
#define MP_RATE_H

/* Samples a second of processor time that `morphd run` takes unless it is told another rate. */
#define MP_RUN_RATE_HZ 4000

#endif
