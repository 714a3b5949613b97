// SPDX-License-Identifier: Apache-2.0
/* table - see table.h. */
#include "daemon/fleet/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "libprof/base/defaults.h"

static void format(const json_t *value, enum md_form form, char *out, size_t room)
{
	double number = json_number_value(value);

	if (!value || json_is_null(value))
		snprintf(out, room, "-");
	else if (json_is_string(value))
		snprintf(out, room, "%s", json_string_value(value));
	else if (json_is_boolean(value))
		snprintf(out, room, "%s", json_is_true(value) ? "yes" : "no");
	else if (form == MD_FORM_TIME)
		md_cli_format_time((int64_t)number, out);
	else if (form == MD_FORM_SHARE)
		snprintf(out, room, "%.3g %%", 100 * number);
	else if (form != MD_FORM_LOG)
		snprintf(out, room, "%.0f", number);
	else if (number < log(1000) && number > log(0.005))
		snprintf(out, room, "%.2f", exp(number));
	else
		snprintf(out, room, "%.0e", exp(fmin(number, 700)));
}

static void put(const char *text, int width)
{
	int used = (int)strlen(text);

	md_cli_put_text(text);
	printf(width ? "%*s" : "\n", width > used ? width - used + 1 : 1, "");
}

int md_table_print(json_t *rows, bool json, const char *command, const struct md_column *columns)
{
	char text[MP_PATH_ROOM];
	json_t *row, *root;
	size_t i;

	if (json) {
		root = md_cli_json_new(command);
		json_object_set(root, "rows", rows);
		return md_cli_json_print(root);
	}
	for (const struct md_column *c = columns;; c++) {
		put(c->title, c->width);
		if (!c->width)
			break;
	}
	json_array_foreach(rows, i, row)
	{
		for (const struct md_column *c = columns;; c++) {
			format(json_object_get(row, c->key), c->form, text, sizeof(text));
			put(text, c->width);
			if (!c->width)
				break;
		}
	}
	return md_cli_finish(MP_EXIT_DONE);
}
