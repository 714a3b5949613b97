// SPDX-License-Identifier: Apache-2.0
/*
 * train_where - finds the file in which a command spent its time, by the samples of a store: the file
 * to optimise, or another one such as a library. Called by train.
 */
#ifndef ME_TRAIN_WHERE_H
#define ME_TRAIN_WHERE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

/* Shares of fewer samples mean nothing. */
#define ME_WHERE_LEAST_SAMPLES 100

struct me_where {
	uint64_t all;	/* samples in files, not in the kernel */
	uint64_t file;	/* in the file to optimise */
	uint64_t other; /* in the other file with the most samples; 0: there is none */
	char *path;	/* of this other file */
	char *name;	/* that the loader looks for: DT_SONAME, or the last part of @path */
	bool matters;	/* the other file has more samples than @file, and there are enough */
	bool library;	/* the other file has a DT_SONAME */
};

/*
 * me_where_find - add up the samples in the store @db. @file is a path as realpath() gives it.
 * Return: 0, -ENOMEM, or as mp_store_open(), with @err set. Ownership: me_where_fini(), always.
 */
int me_where_find(const char *db, const char *file, struct me_where *where, struct mp_err *err);
void me_where_fini(struct me_where *where);

#endif
