// SPDX-License-Identifier: Apache-2.0
/*
 * verify_graph - divides all code of the original into blocks, and finds the calls that never
 * return.
 */
#ifndef ME_VERIFY_GRAPH_H
#define ME_VERIFY_GRAPH_H

#include "editor/verify/base/verify_context.h"

/* Fill @vf->stubs.graph. Return: 0, -ENOMEM, or a refusal. Ownership: vf_graph_free(), also after an error. */
int vf_graph_build(struct vf *vf);
void vf_graph_free(struct vf *vf);

#endif
