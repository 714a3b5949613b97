// SPDX-License-Identifier: Apache-2.0
/*
 * settings - reads files whose lines are `name = value', empty, or begin with #. Decides what a
 * line is; the caller decides which names and values there are. Called by morphd's config and by
 * morph-worker's policy.
 */
#ifndef MP_SETTINGS_H
#define MP_SETTINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "libprof/base/err.h"

struct mp_setting {
	const char *path; /* of the file, for messages */
	unsigned int line;
	const char *name, *value; /* without blanks at their ends; the value may be empty */
};

/* Takes one setting. Return: 0; -EINVAL with mp_setting_refuse*(); -errno: reading ends. */
typedef int mp_setting_take(const struct mp_setting *setting, void *arg, struct mp_err *err);

/*
 * mp_settings_read - gives each setting of @file to @take, in order. @path names the file in
 * messages. Return: 0; -EINVAL with "PATH:LINE: what is wrong"; -errno: it cannot be read.
 */
int mp_settings_read(FILE *file, const char *path, mp_setting_take *take, void *arg,
		     struct mp_err *err);

/* Sets "PATH:LINE: NAME: why". Return: -EINVAL. */
int mp_setting_refuse(const struct mp_setting *setting, const char *why, struct mp_err *err);
/* Sets "PATH:LINE: NAME = VALUE: why". Return: -EINVAL. */
int mp_setting_refuse_value(const struct mp_setting *setting, const char *why, struct mp_err *err);

/* Cuts blanks at both ends of @text. Return: where the rest begins. */
char *mp_settings_trim(char *text);
/*
 * mp_settings_number - reads a number from @low to @high; @whole: without a fraction. Return: 0,
 * -EINVAL with a message that does not name @text.
 */
int mp_settings_number(const char *text, double low, double high, bool whole, double *out,
		       struct mp_err *err);

#endif
