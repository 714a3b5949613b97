// SPDX-License-Identifier: Apache-2.0
/*
 * run - `morphd run`: samples one command, or selected processes, units and users. Called by
 * morphd's main.
 */
#ifndef MD_RUN_H
#define MD_RUN_H

#include "daemon/morphd/options.h"

/* *@status: exit status of the command. Return: 0 or -errno. */
int md_run_main(const struct md_options *o, int *status, struct mp_err *err);

#endif
