// SPDX-License-Identifier: Apache-2.0
/* canary_policy - see canary_policy.h. */
#include "daemon/fleet/rollout/canary_policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fleet/server_json.h"
#include "daemon/fleet/server_private.h"
#include "daemon/stats/stats.h"

enum form {
	FORM_YES_NO,
	FORM_SHARES, /* several, between commas */
	FORM_SHARE,
	FORM_COUNT,
	FORM_NUMBER,
	FORM_SECONDS
};

/* The columns of fleet.canary_policy. The database checks values, too. */
static const struct column {
	const char *name;
	enum form form;
} columns[] = {
	{"rolls_out", FORM_YES_NO},  {"automatic", FORM_YES_NO},   {"shares", FORM_SHARES},
	{"least_hosts", FORM_COUNT}, {"least_audits", FORM_COUNT}, {"soak_s", FORM_SECONDS},
	{"stage_s", FORM_SECONDS},   {"lease_s", FORM_SECONDS},	   {"alpha", FORM_SHARE},
	{"doubted", FORM_SHARE},     {"most_factor", FORM_NUMBER}, {"margin", FORM_SHARE},
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* ---- one change ---------------------------------------------------------------------------- */

/* A number, and what stands behind it. Return: false: there is none. */
static bool read_number(const char *text, double *number, const char **rest)
{
	char *end;

	*number = strtod(text, &end);
	*rest = end;
	return end != text && isfinite(*number) && *number >= 0;
}

static bool read_share(const char *text, double *share)
{
	const char *rest;

	if (!read_number(text, share, &rest))
		return false;
	if (!strcmp(rest, "%"))
		*share /= 100;
	else if (*rest)
		return false;
	return *share <= 1;
}

static bool read_shares(char *text, char *out, size_t room)
{
	size_t size = 0;
	char *save;

	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		double share;

		if (!read_share(word, &share) || size + 32 > room)
			return false;
		size += (size_t)snprintf(out + size, room - size, "%s%.9g", size ? "," : "", share);
	}
	return size > 0;
}

static bool read_seconds(const char *text, double *seconds)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
	const char *rest;

	if (!read_number(text, seconds, &rest))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(rest, units[i].unit) != 0)
			continue;
		*seconds = round(*seconds * units[i].seconds);
		return *seconds < 1e12;
	}
	return false;
}

static bool read_value(enum form form, char *text, char *out, size_t room)
{
	const char *rest;
	double number;

	switch (form) {
	case FORM_YES_NO:
		snprintf(out, room, "%s", text);
		return !strcmp(text, "yes") || !strcmp(text, "no");
	case FORM_SHARES: return read_shares(text, out, room);
	case FORM_SHARE:
		snprintf(out, room, "%.9g", read_share(text, &number) ? number : -1);
		return *out != '-';
	case FORM_SECONDS:
		snprintf(out, room, "%.0f", read_seconds(text, &number) ? number : -1);
		return *out != '-';
	case FORM_COUNT:
	case FORM_NUMBER:
		if (!read_number(text, &number, &rest) || *rest || number >= 1e9 ||
		    (form == FORM_COUNT && number != floor(number)))
			return false;
		snprintf(out, room, "%.9g", number);
		return true;
	}
	return false;
}

int md_policy_read_change(const char *text, struct md_policy_change *out, struct mp_err *err)
{
	const char *equals = strchr(text, '=');
	size_t size = equals ? (size_t)(equals - text) : 0;
	char value[256];

	for (size_t i = 0; equals && i < NR_COLUMNS; i++) {
		const struct column *c = &columns[i];

		if (strlen(c->name) != size || strncmp(c->name, text, size) != 0)
			continue;
		out->column = c->name;
		snprintf(value, sizeof(value), "%s", equals + 1);
		if (strlen(equals + 1) < sizeof(value) &&
		    read_value(c->form, value, out->value, sizeof(out->value)))
			return 0;
		return mp_err_set(err, EINVAL, "%s: no such value", text);
	}
	return mp_err_set(err, EINVAL, "%s: no such setting", text);
}

/* ---- the database -------------------------------------------------------------------------- */

/* A module's own policy begins as a copy. */
static int copy_policy(PGconn *conn, const char *module, struct mp_err *err)
{
	char sql[1024], names[512] = "";

	for (size_t i = 0; i < NR_COLUMNS; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), ", %s",
			 columns[i].name);
	snprintf(sql, sizeof(sql),
		 "INSERT INTO fleet.canary_policy(module%s) SELECT decode($1, 'hex')%s"
		 " FROM fleet.canary_policy WHERE module = '' ON CONFLICT DO NOTHING",
		 names, names);
	return md_fleet_run(conn, sql, 1, &module, "copy the policy", NULL, err);
}

static int set_column(PGconn *conn, const char *module, const struct md_policy_change *change,
		      struct mp_err *err)
{
	const char *const params[] = {module, change->value};
	bool list = !strcmp(change->column, "shares");
	char sql[256];

	/* The column's name comes from this file, and its type decides how the text is read. */
	snprintf(sql, sizeof(sql),
		 "UPDATE fleet.canary_policy SET %s = %s WHERE module = decode($1, 'hex')",
		 change->column, list ? "('{' || $2 || '}')::double precision[]" : "$2");
	return md_fleet_run(conn, sql, 2, params, change->column, NULL, err);
}

int md_policy_change(PGconn *conn, const char *module, const struct md_policy_change *changes,
		     size_t nr, struct mp_err *err)
{
	int r = md_fleet_run(conn, "BEGIN", 0, NULL, "change the policy", NULL, err);

	if (r)
		return r;
	if (*module)
		r = copy_policy(conn, module, err);
	for (size_t i = 0; i < nr && !r; i++)
		r = set_column(conn, module, &changes[i], err);
	if (!r)
		return md_fleet_run(conn, "COMMIT", 0, NULL, "change the policy", NULL, err);
	md_fleet_run(conn, "ROLLBACK", 0, NULL, "change the policy", NULL, NULL);
	return r;
}

int md_policy_drop(PGconn *conn, const char *module, struct mp_err *err)
{
	return md_fleet_run(
		conn,
		"DELETE FROM fleet.canary_policy WHERE module = decode($1, 'hex') AND module <> ''",
		1, &module, "remove the policy", NULL, err);
}

/* ---- print --------------------------------------------------------------------------------- */

static const char policies[] =
	"SELECT encode(module, 'hex') AS module, encode(substr(module, 9), 'hex') AS build_id, rolls_out, automatic, "
	"array_to_json(shares) AS shares, least_hosts, least_audits, soak_s, stage_s, lease_s, alpha, doubted, "
	"most_factor, margin FROM fleet.canary_policy ORDER BY module";

static void put_value(const json_t *value)
{
	const json_t *share;
	size_t i;

	if (json_is_boolean(value))
		fputs(json_is_true(value) ? "yes" : "no", stdout);
	else if (json_is_array(value))
		json_array_foreach((json_t *)value, i, share)
			printf("%s%.9g", i ? "," : "", json_number_value(share));
	else
		printf("%.9g", json_number_value(value));
}

static void put_policy(const json_t *row)
{
	const char *build_id = md_row_text(row, "build_id");

	if (!md_row_text(row, "module")[0])
		puts("all modules");
	else
		printf("%s\n", *build_id ? build_id : md_row_text(row, "module"));
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		printf("  %-12s ", columns[i].name);
		put_value(json_object_get(row, columns[i].name));
		putchar('\n');
	}
}

int md_policy_print(PGconn *conn, bool json, struct mp_err *err)
{
	json_t *rows, *root;
	int r = md_fleet_rows(conn, policies, 0, NULL, "read the policies", &rows, err);

	if (r)
		return r;
	if (json) {
		root = md_stats_json_new("canary-policy");
		json_object_set(root, "rows", rows);
		md_stats_json_print(root);
	} else {
		for (size_t i = 0; i < json_array_size(rows); i++)
			put_policy(json_array_get(rows, i));
	}
	json_decref(rows);
	return 0;
}
