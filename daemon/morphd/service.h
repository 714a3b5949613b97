// SPDX-License-Identifier: Apache-2.0
/*
 * service - morphd without `run`: collects until a signal, or replays a recording. Reads its
 * configuration again at SIGHUP. Called by morphd's main.
 */
#ifndef MD_SERVICE_H
#define MD_SERVICE_H

#include "daemon/morphd/options.h"

/* *@status: exit status, if it is not that of the result. Return: 0 or -errno. */
int md_service_main(const struct md_options *o, int *status, struct mp_err *err);

#endif
