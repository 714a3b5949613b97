// SPDX-License-Identifier: Apache-2.0
#ifndef ME_VERIFY_RETURNS_H
#define ME_VERIFY_RETURNS_H

struct vf;

/* Mark functions with a direct call that returns to another place than behind it. Return: 0, -ENOMEM. */
int vf_find_returns(const struct vf *vf);

#endif
