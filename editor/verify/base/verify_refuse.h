// SPDX-License-Identifier: Apache-2.0
/*
 * verify_refuse - the form of a refusal's message, and which function has to stay so that the
 * refused difference is gone.
 */
#ifndef ME_VERIFY_REFUSE_H
#define ME_VERIFY_REFUSE_H

#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * Set the message of a refusal, with address and symbol. The first message about a function stays.
 * Return: -EBADMSG.
 */
int vf_refuse(const struct vf *vf, uint64_t vaddr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
