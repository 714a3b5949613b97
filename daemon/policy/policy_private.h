// SPDX-License-Identifier: Apache-2.0
/* policy_private - keys of the policy's files, for policy and its reader. */
#ifndef MD_POLICY_PRIVATE_H
#define MD_POLICY_PRIVATE_H

#include "daemon/policy/policy.h"
#include "libprof/base/settings.h"

#define MD_MAX_KEYS 32

/* A file that is being read; @arg of md_policy_take_main() and md_policy_take_rule(). */
struct md_policy_file {
	void *into;			 /* struct md_policy or struct md_rule */
	unsigned int lines[MD_MAX_KEYS]; /* where each key was set; 0: nowhere */
};

mp_setting_take md_policy_take_main, md_policy_take_rule;
/* Do the settings of the rule fit together? Fills in what follows from others. */
int md_policy_check_rule(struct md_rule *rule, const struct md_policy_file *file,
			 struct mp_err *err);

#endif
