// SPDX-License-Identifier: Apache-2.0
/* table - rows of the database as a table on paper, or as JSON. Called by the commands that show something. */
#ifndef MD_FLEET_TABLE_H
#define MD_FLEET_TABLE_H

#include "daemon/fleet/command.h"
#include "daemon/fleet/pg.h"

enum md_form {
	MD_FORM_PLAIN, /* text, a number, yes or no */
	MD_FORM_TIME,  /* seconds since 1970 */
	MD_FORM_SHARE, /* in per cent */
	MD_FORM_LOG,   /* a number by its logarithm: "12", "0.04", "3e+20" */
};

struct md_column {
	const char *title, *key;
	int width; /* on paper; 0: the last column */
	enum md_form form;
};

/* Prints @rows, which JSON has as they are. The last of @columns has the width 0. Return: exit status. */
int md_table_print(json_t *rows, bool json, const char *command, const struct md_column *columns);

#endif
