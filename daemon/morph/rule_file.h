// SPDX-License-Identifier: Apache-2.0
/*
 * rule_file - writes and removes rules of the policy's watch.d. A rule appears whole or not at all.
 * Rules that a person wrote are never replaced or removed. Called by `morph watch'.
 */
#ifndef MD_RULE_FILE_H
#define MD_RULE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/err.h"

/* The contents of a rule. A text that is NULL is not written. */
struct md_rule_text {
	const char **programs; /* paths, patterns, "package:NAME" */
	size_t nr_programs;
	const char *mode; /* "adopt", "advise" */
	const char *unit, *user;
	char **command; /* its words; it trains and audits */
	int nr_command;
};

/* Makes the policy's directory and its parent if they are missing. Return: 0, -errno. */
int md_policy_make_dir(const char *dir, struct mp_err *err);
bool md_rule_name_is_valid(const char *name);
/* A name for a rule about @program, such as "perl". */
void md_rule_name_of(const char *program, char *buf, size_t size);

/*
 * md_rule_file_write - writes DIR/watch.d/NAME.conf; makes the directories. @file gets its path.
 * md_rule_file_settle() follows. Return: 0; -EEXIST: a person wrote a rule of this name; -EINVAL: a text has a line break; -errno.
 */
int md_rule_file_write(const char *dir, const char *name, const struct md_rule_text *rule,
		       char *file, size_t size, struct mp_err *err);
/* A rule that was written is accepted, or is taken back: then the rule that it replaced, if any, is there again. */
void md_rule_file_settle(const char *file, bool accepted);
/* Return: 0; -EPERM: a person wrote it; -errno. */
int md_rule_file_remove(const char *file, struct mp_err *err);

#endif
