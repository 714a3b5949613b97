// SPDX-License-Identifier: Apache-2.0
/* lease - reads, checks and writes the file of leases; see lease.h. */
#include "daemon/fleet/rollout/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cli/cli.h"
#include "libprof/base/grow.h"
#include "libprof/cli/json.h"

/* No policy means a longer time. */
#define LEASE_MAX_S (366 * 86400.0)
#define LEASES_MAX  10000
/* Clocks are corrected by so much without being wrong. */
#define CLOCK_SLACK_S 300

bool md_lease_is_over(const struct md_lease *lease, int64_t now_s)
{
	return lease->expires_s &&
	       (now_s >= lease->expires_s || now_s < lease->granted_s - CLOCK_SLACK_S);
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool copy(const char *text, char *out, size_t size)
{
	return snprintf(out, size, "%s", text) < (int)size;
}

static bool take(json_t *object, struct md_lease *lease)
{
	const char *path, *module, *options, *version, *layout;
	json_int_t release, granted, expires;

	*lease = (struct md_lease){0};
	if (json_unpack(object, "{s:s, s:s, s:s, s:s, s:I, s:s, s:I, s:I}", "path", &path, "module",
			&module, "options", &options, "version", &version, "release", &release,
			"layout", &layout, "granted_s", &granted, "expires_s", &expires))
		return false;
	lease->release = (int32_t)release;
	lease->granted_s = granted;
	lease->expires_s = expires;
	return path[0] == '/' && copy(path, lease->path, sizeof(lease->path)) &&
	       !md_module_of_text(module, &lease->id) &&
	       copy(options, lease->options, sizeof(lease->options)) &&
	       copy(version, lease->version, sizeof(lease->version)) &&
	       copy(layout, lease->layout, sizeof(lease->layout)) && release >= 0 &&
	       release <= INT32_MAX && granted >= 0 && expires >= 0;
}

static int read_leases(struct md_leases *leases, struct mp_err *err)
{
	FILE *file = fopen(leases->file, "re");
	json_t *root, *rows;
	size_t nr;
	bool fine;

	if (!file)
		return errno == ENOENT
			       ? 0
			       : mp_err_set(err, errno, "%s: %s", leases->file, strerror(errno));
	root = json_loadf(file, 0, NULL);
	fclose(file);
	rows = json_object_get(root, "leases");
	nr = json_array_size(rows);
	fine = json_is_array(rows) && nr <= LEASES_MAX;
	leases->list = fine ? calloc(nr + 1, sizeof(*leases->list)) : NULL;
	for (size_t i = 0; i < nr && leases->list && fine; i++)
		fine = take(json_array_get(rows, i), &leases->list[i]);
	leases->nr = fine ? nr : 0;
	json_decref(root);
	if (!fine)
		return mp_err_set(err, EBADMSG,
				  "%s: damaged; morph undo puts originals back, then "
				  "remove the file",
				  leases->file);
	return leases->list ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

int md_leases_open(const char *state_dir, struct md_leases *out, struct mp_err *err)
{
	char lock[PATH_MAX];
	struct stat st;
	int r;

	*out = (struct md_leases){.lock = -1};
	if ((mkdir(state_dir, 0755) && errno != EEXIST) || stat(state_dir, &st))
		return mp_err_set(err, errno, "%s: %s", state_dir, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return mp_err_set(err, EPERM, "%s: others can write there, or own it", state_dir);
	if (snprintf(out->file, sizeof(out->file), "%s/fleet-leases.json", state_dir) >=
		    (int)sizeof(out->file) ||
	    snprintf(lock, sizeof(lock), "%s/fleet-leases.lock", state_dir) >= (int)sizeof(lock))
		return mp_err_set(err, ENAMETOOLONG, "%s: the name is too long", state_dir);
	out->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out->lock < 0 || flock(out->lock, LOCK_EX))
		r = mp_err_set(err, errno, "%s: %s", lock, strerror(errno));
	else
		r = read_leases(out, err);
	if (r)
		md_leases_close(out);
	return r;
}

void md_leases_close(struct md_leases *leases)
{
	if (leases->lock >= 0)
		close(leases->lock);
	free(leases->list);
	*leases = (struct md_leases){.lock = -1};
}

/* ---- writing ------------------------------------------------------------------------------- */

static json_t *json_of(const struct md_lease *lease)
{
	char hex[2 * MD_MODULE_KEY_MAX + 1];
	uint8_t key[MD_MODULE_KEY_MAX];

	md_hex_write(key, md_module_key(&lease->id, key), hex);
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:I, s:I}", "path", lease->path, "module",
			 hex, "options", lease->options, "version", lease->version, "release",
			 (int)lease->release, "layout", lease->layout, "granted_s",
			 (json_int_t)lease->granted_s, "expires_s", (json_int_t)lease->expires_s);
}

static int write_leases(const struct md_leases *leases, struct mp_err *err)
{
	json_t *rows = json_array(), *root = json_pack("{s:o}", "leases", rows);
	char new[PATH_MAX + 8];
	int fd, r = 0;

	/* A path that is no UTF-8 gives no object, and then nothing is written. */
	for (size_t i = 0; i < leases->nr && !r; i++)
		if (json_array_append_new(rows, json_of(&leases->list[i])))
			r = mp_err_set(err, EILSEQ, "%s: cannot have a lease, its name is no UTF-8",
				       leases->list[i].path);
	if (!mp_json_is_whole(root))
		r = mp_err_code(err, ENOMEM);
	snprintf(new, sizeof(new), "%s.new", leases->file);
	fd = r ? -1 : open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (!r && (fd < 0 || json_dumpfd(root, fd, JSON_INDENT(1)) || fsync(fd) ||
		   rename(new, leases->file)))
		r = mp_err_set(err, errno ? errno : EIO, "%s: cannot be written", leases->file);
	if (fd >= 0)
		close(fd);
	json_decref(root);
	return r;
}

static struct md_lease *find(const struct md_leases *leases, const char *path)
{
	for (size_t i = 0; i < leases->nr; i++)
		if (!strcmp(leases->list[i].path, path))
			return &leases->list[i];
	return NULL;
}

int md_leases_put(struct md_leases *leases, const struct md_lease *lease, struct mp_err *err)
{
	struct md_lease *place = find(leases, lease->path), before;
	bool is_new = !place;
	int r;

	if (is_new) {
		if (leases->nr == LEASES_MAX)
			return mp_err_set(err, E2BIG, "more than %d leases", LEASES_MAX);
		if (mp_resize(leases->list, leases->nr + 1))
			return mp_err_set(err, ENOMEM, "out of memory");
		place = &leases->list[leases->nr++];
		*place = (struct md_lease){0};
	}
	before = *place;
	*place = *lease;
	r = write_leases(leases, err);
	if (r && is_new)
		leases->nr--;
	else if (r)
		*place = before;
	return r;
}

int md_leases_remove(struct md_leases *leases, const char *path, struct mp_err *err)
{
	struct md_lease *place = find(leases, path);

	if (!place)
		return 0;
	*place = leases->list[--leases->nr];
	return write_leases(leases, err);
}

/* ---- the server --------------------------------------------------------------------------- */

int md_lease_ask(PGconn *conn, struct md_lease *lease, int64_t now_s, enum md_offer *answer,
		 char *cause, size_t size, struct mp_err *err)
{
	static const char *const names[] = {"lease", "keep", "wait", "no", "withdrawn"};
	uint8_t key[MD_MODULE_KEY_MAX];
	const json_t *row;
	double lease_s;
	json_t *rows;
	int i, r = md_pg_rows(
		       conn, "ask for a lease", &rows, err,
		       "SELECT answer, cause, lease_s FROM fleet.canary_offer($1, $2, $3, $4)",
		       "btti", key, md_module_key(&lease->id, key), lease->options, lease->version,
		       (int64_t)lease->release);

	if (r)
		return r;
	row = json_array_get(rows, 0);
	lease_s = md_row_number(row, "lease_s");
	i = md_cli_find_word(md_row_text(row, "answer"), names, 5);
	if (i < 0 || (i == MD_OFFER_LEASE && (lease_s < 1 || lease_s > LEASE_MAX_S)))
		r = mp_err_set(err, EPROTO, "%s",
			       "the server answers in another form: upgrade Morph or its tables");
	*answer = (enum md_offer)i;
	snprintf(cause, size, "%s", md_row_text(row, "cause"));
	if (!r && i <= MD_OFFER_KEEP) {
		lease->granted_s = now_s;
		lease->expires_s = i == MD_OFFER_KEEP ? 0 : now_s + (int64_t)lease_s;
	}
	json_decref(rows);
	return r;
}
