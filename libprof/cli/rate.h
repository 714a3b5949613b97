// SPDX-License-Identifier: Apache-2.0
/* rate - sampling rates that several programs use. */
#ifndef MP_RATE_H
#define MP_RATE_H

/* Default rate of `morphd run`, in samples per second of processor time. */
#define MP_RUN_RATE_HZ 4000

#endif
