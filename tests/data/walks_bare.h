// SPDX-License-Identifier: Apache-2.0
/* walks_bare - a library that is built without unwind tables. */
#ifndef MORPH_TESTS_WALKS_BARE_H
#define MORPH_TESTS_WALKS_BARE_H

/* Calls @f through several frames. */
long bare_outer(void (*f)(long), long n);

#endif
