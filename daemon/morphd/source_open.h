// SPDX-License-Identifier: Apache-2.0
/*
 * source_open - opens the source that was asked for, at the rate that was asked for or at one
 * whose cost is negligible. Called by service and run.
 */
#ifndef MD_SOURCE_OPEN_H
#define MD_SOURCE_OPEN_H

#include "daemon/morphd/config.h"
#include "daemon/morphd/options.h"
#include "daemon/source/source.h"

/*
 * For one run: as @asked, by @o's source, with registers for ways of branches where these are wanted
 * and possible. *@ways: samples come with such registers. Return: 0 or -errno.
 */
int md_source_open_for_run(const struct md_options *o, struct md_source_config *asked,
			   struct md_source **out, bool *ways, struct mp_err *err);
/*
 * For the service: the same for the source of @config. Without a rate, the rate follows from what a
 * sample costs.
 */
int md_source_open_for_service(const struct md_options *o, const struct md_config *config,
			       struct md_source **out, bool *ways, struct mp_err *err);

#endif
