// SPDX-License-Identifier: Apache-2.0
/*
 * verify_place - marks functions of which data may know places inside, without relocations that
 * tell.
 */
#ifndef ME_VERIFY_PLACE_H
#define ME_VERIFY_PLACE_H

#include "editor/verify/base/verify_context.h"

/* Mark functions of which data may know places. Needs @bases and @refs in order. Return: 0, -ENOMEM. */
int vf_find_places(const struct vf *vf);

#endif
