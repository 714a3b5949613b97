// SPDX-License-Identifier: Apache-2.0
/* canary_policy - see canary_policy.h. */
#include "daemon/fleet/rollout/canary_policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/module_key.h"
#include "daemon/stats/stats.h"

/* The columns of fleet.canary_policy. The database checks values, too. */
static const struct column {
	const char *name;
	const char *units; /* that a number may have; NULL: it is yes or no */
	double most;
	bool whole, list; /* @list: several, between commas */
} columns[] = {
	{"rolls_out", NULL, 0, false, false},	 {"automatic", NULL, 0, false, false},
	{"shares", "%", 1, false, true},	 {"least_hosts", "", 1e9, true, false},
	{"least_audits", "", 1e9, true, false},	 {"soak_s", "smhdw", 1e12, true, false},
	{"stage_s", "smhdw", 1e12, true, false}, {"lease_s", "smhdw", 1e12, true, false},
	{"alpha", "%", 1, false, false},	 {"doubted", "%", 1, false, false},
	{"most_factor", "", 1e9, false, false},	 {"margin", "%", 1, false, false},
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* ---- one change ---------------------------------------------------------------------------- */

/* Appends a number to @out. */
static bool read_number(const struct column *c, const char *text, char *out, size_t room)
{
	static const char units[] = "%smhdw";
	static const double factors[] = {0.01, 1, 60, 3600, 86400, 604800};
	size_t used = strlen(out);
	char *unit;
	double number = strtod(text, &unit);

	if (unit == text || (*unit && (unit[1] || !strchr(c->units, *unit))))
		return false;
	if (*unit)
		number *= factors[strchr(units, *unit) - units];
	if (!(number >= 0 && number <= c->most) || (c->whole && number != floor(number)))
		return false;
	return snprintf(out + used, room - used, "%s%.12g", used > 1 ? "," : "", number) + 1 <
	       (int)(room - used);
}

static bool read_value(const struct column *c, char *text, char *out, size_t room)
{
	char *save;

	snprintf(out, room, "%s", c->list ? "{" : c->units ? "" : text);
	if (!c->units)
		return !strcmp(text, "yes") || !strcmp(text, "no");
	if (!c->list)
		return read_number(c, text, out, room);
	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save))
		if (!read_number(c, word, out, room))
			return false;
	strcat(out, "}");
	return strlen(out) > 2;
}

int md_policy_read_change(struct md_policy_changes *changes, const char *text, struct mp_err *err)
{
	size_t size = strcspn(text, "=");
	char value[256];

	for (size_t i = 0; i < NR_COLUMNS; i++) {
		const struct column *c = &columns[i];

		if (strlen(c->name) != size || strncmp(c->name, text, size) != 0)
			continue;
		if (changes->nr == MD_POLICY_CHANGES_MAX)
			return mp_err_set(err, EINVAL, "%s: too many arguments", text);
		if (snprintf(value, sizeof(value), "%s", text + size + 1) >= (int)sizeof(value) ||
		    !read_value(c, value, changes->list[changes->nr].value,
				sizeof(changes->list[0].value)))
			return mp_err_set(err, EINVAL, "%s: no such value", text);
		changes->list[changes->nr++].column = c->name;
		return 0;
	}
	return mp_err_set(err, EINVAL, "%s: no such setting", text);
}

/* ---- the database -------------------------------------------------------------------------- */

#define MODULE "coalesce(($1::bytea[])[1], '')"

struct change {
	const char *module;
	const struct md_policy_changes *changes;
};

/* In a transaction. A module's own policy begins as a copy. */
static int change(PGconn *conn, void *arg, struct mp_err *err)
{
	const struct change *c = arg;
	struct md_pg_params p = {0};
	char sql[1024] = "UPDATE fleet.canary_policy SET ";
	int r = md_pg_run(conn, "copy the policy", NULL, err,
			  "INSERT INTO fleet.canary_policy"
			  " SELECT (jsonb_populate_record(p, jsonb_build_object('module', " MODULE
			  "))).*"
			  " FROM fleet.canary_policy p WHERE module = '' ON CONFLICT DO NOTHING",
			  "t", c->module);

	md_pg_add(&p, "t", c->module);
	for (size_t i = 0; i < c->changes->nr; i++) {
		/* The column's name comes from this file, and its type decides how the text is read. */
		snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), "%s%s = $%d", i ? ", " : "",
			 c->changes->list[i].column, p.nr + 1);
		md_pg_add(&p, "t", c->changes->list[i].value);
	}
	strcat(sql, " WHERE module = " MODULE);
	return r ? r : md_pg_run_with(conn, "change the policy", NULL, err, sql, &p);
}

int md_policy_change(PGconn *conn, const char *module, const struct md_policy_changes *changes,
		     struct mp_err *err)
{
	struct change c = {module, changes};

	return md_pg_transaction(conn, change, &c, "change the policy", err);
}

int md_policy_drop(PGconn *conn, const char *module, struct mp_err *err)
{
	return md_pg_run(conn, "remove the policy", NULL, err,
			 "DELETE FROM fleet.canary_policy WHERE module = " MODULE
			 " AND module <> ''",
			 "t", module);
}

/* ---- print --------------------------------------------------------------------------------- */

static void put_value(json_t *value)
{
	json_t *share;
	size_t i;

	if (json_is_boolean(value))
		fputs(json_is_true(value) ? "yes" : "no", stdout);
	json_array_foreach(value, i, share)
		printf("%s%.9g", i ? "," : "", json_number_value(share));
	if (json_is_number(value))
		printf("%.9g", json_number_value(value));
	putchar('\n');
}

static void put_policy(const json_t *row)
{
	const char *build_id = md_row_text(row, "build_id"), *module = md_row_text(row, "module");

	puts(*build_id ? build_id : *module ? module : "all modules");
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		printf("  %-12s ", columns[i].name);
		put_value(json_object_get(row, columns[i].name));
	}
}

int md_policy_print(PGconn *conn, bool json, struct mp_err *err)
{
	json_t *rows, *root, *row;
	size_t i;
	int r = md_pg_rows(
		conn, "read the policies", &rows, err,
		"SELECT encode(module, 'hex') AS module, encode(substr(module, 9), 'hex') AS build_id, "
		"rolls_out, automatic, shares, least_hosts, least_audits, soak_s, stage_s, lease_s, alpha, "
		"doubted, most_factor, margin FROM fleet.canary_policy ORDER BY canary_policy.module",
		"");

	if (r)
		return r;
	if (json) {
		root = md_stats_json_new("canary-policy");
		json_object_set(root, "rows", rows);
		md_stats_json_print(root);
	} else {
		json_array_foreach(rows, i, row) put_policy(row);
	}
	json_decref(rows);
	return 0;
}
