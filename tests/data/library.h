// SPDX-License-Identifier: Apache-2.0
#ifndef MORPH_TEST_LIBRARY_H
#define MORPH_TEST_LIBRARY_H
typedef int (*library_fn)(int);
extern __thread int library_tls;
int library_add(int x);
library_fn library_address(void);
int library_apply(library_fn fn, int n);
int library_same(library_fn fn);
library_fn library_find(const char *name);
extern library_fn library_table[2];
extern const char *library_inside;
#endif
