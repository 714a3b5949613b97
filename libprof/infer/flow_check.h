// SPDX-License-Identifier: Apache-2.0
/* flow_check - refuses a flow whose numbers make no sense. Called by infer and path_infer. */
#ifndef MP_FLOW_CHECK_H
#define MP_FLOW_CHECK_H

#include "libprof/base/err.h"
#include "libprof/infer/infer.h"

/* Return: 0, -EINVAL with a message. */
int mp_flow_check(const struct mp_flow *flow, struct mp_err *err);
/* As mp_flow_check(), for path_infer. */
int mp_path_flow_check(const struct mp_flow *flow, const double *block_count,
		       const double *edge_count, struct mp_err *err);

#endif
