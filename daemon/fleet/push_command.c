// SPDX-License-Identifier: Apache-2.0
/* push_command - the command "push": options, messages and exit status; see push.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "daemon/fleet/command.h"
#include "daemon/fleet/defaults.h"
#include "daemon/fleet/push.h"
#include "daemon/cli/cli.h"

#define MP_OPTIONS struct options

struct options {
	struct md_fleet_access access;
	const char *db, *rate, *names, *contexts, *salt_file, *machine_id;
	double give_up_s, first_wait_s, batch_kib;
	bool sparing, json;
};

static const struct mp_option option_table[] = {
	MP_VALUE(TEXT, "db", 0, db, "FILE",
		 "The store to send (default: see FILES in the man page)"),
	MP_VALUE(TEXT, "rate", 0, rate, "KIB", "Send at most so many KiB per second"),
	MP_NUMBER("batch", 0, batch_kib, 1, MP_FLEET_BATCH_BYTES_MAX >> 10, "KIB", NULL),
	MP_VALUE(TEXT, "names", 0, names, "HOW",
		 "Send names of files hashed (default; not at all without a salt), plain, or no"),
	MP_VALUE(TEXT, "contexts", 0, contexts, "WHEN",
		 "Send paths, calling contexts and sampled calls daily (default: those of a day when it is "
		 "over), always, or no"),
	MP_VALUE(TEXT, "salt-file", 0, salt_file, "FILE",
		 "The salt of hashed names, the same on all hosts"),
	MP_NUMBER("give-up", 0, give_up_s, 0, 1e6, "SECONDS",
		  "Try so long to reach the server (default: 300)"),
	MP_NUMBER("retry", 0, first_wait_s, 0.001, 1e6, "SECONDS", NULL),
	MP_VALUE(TEXT, "machine-id", 0, machine_id, "FILE",
		 "What tells this machine from others (default: /etc/machine-id)"),
	MP_FLAG("sparing", sparing,
		"Send most counts of today when the day is over, not each time"),
	MD_JSON,
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = option_table,
	.doc = "Send the counts of this host's store that the fleet's server lacks. May be killed at any "
	       "moment: the next push continues.\v"
	       "Build-ids, hashes and counts leave the host, and nothing else that is not configured. "
	       "Exit status: 0 done, 1 failed, 2 usage, 3 no store, 75 the server is gone or takes no more "
	       "today."};

/* The options override the file. */
static int configure(struct options *o, struct md_push_options *push)
{
	const struct {
		const char *key, *value;
	} given[] = {{"rate", o->rate},
		     {"names", o->names},
		     {"contexts", o->contexts},
		     {"salt-file", o->salt_file}};
	struct md_fleet_config *config = &o->access.config;
	struct mp_err err = {""};
	int r = md_fleet_access_find(&o->access);

	if (r)
		return r;
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		if (!given[i].value ||
		    !md_fleet_config_set(config, given[i].key, given[i].value, &err))
			continue;
		md_cli_fail("--%s=%s: %s", given[i].key, given[i].value, err.msg);
		return MP_EXIT_USAGE;
	}
	push->database = config->database;
	push->names.how = config->names;
	push->contexts = config->contexts;
	push->bytes_per_s = (uint64_t)(config->rate * 1024);
	push->batch_bytes = (size_t)(o->batch_kib * 1024);
	push->give_up_s = o->give_up_s;
	push->first_wait_s = o->first_wait_s;
	push->sparing = o->sparing;
	if (config->salt_file[0] && md_file_names_read_salt(&push->names, config->salt_file, &err))
		return md_cli_fail("%s", err.msg);
	return 0;
}

/* Without an id, only the server's token tells copies of the store apart. */
static int read_machine(const char *path, struct md_push_options *push)
{
	int r = mp_machine_id_read(path, push->machine);

	(void)mp_machine_id_read(NULL, push->own_machine);
	return r && path ? md_cli_fail("%s: %s", path, strerror(-r)) : 0;
}

/*
 * Opens the store, which must exist. One push at a time works on a store: the lock lasts until the
 * process ends. The descriptor stays open, since closing any of a file drops SQLite's locks of it.
 */
static int open_store(const char *db, struct mp_store **out)
{
	char path[PATH_MAX];
	struct mp_err err = {""};
	int fd, r = 0;

	if (!db)
		r = mp_store_default_path(path, sizeof(path), false, &err);
	if (r)
		return md_cli_fail("%s", err.msg);
	db = db ? db : path;
	fd = open(db, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		r = errno == ENOENT ? MP_EXIT_NO_PROFILE : MP_EXIT_FAILED;
		md_cli_fail("%s: %s", db, errno == ENOENT ? "no such database" : strerror(errno));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		md_cli_fail("%s: another push is sending it", db);
		return MP_EXIT_LATER;
	}
	return mp_store_open(db, MP_STORE_WRITE, out, &err) ? md_cli_fail("%s", err.msg) : 0;
}

static int print(const struct options *o, const struct md_push_report *r)
{
	json_t *root;

	if (!o->json) {
		printf("%zu rows of %zu modules sent: %" PRIu64 " bytes of counts in %zu batches\n",
		       r->nr_rows, r->nr_modules, r->nr_bytes, r->nr_batches);
		return md_cli_finish(MP_EXIT_DONE);
	}
	root = md_cli_json_new("push");
	json_object_update_new(
		root,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rows",
			  (json_int_t)r->nr_rows, "nr_modules", (json_int_t)r->nr_modules, "bytes",
			  (json_int_t)r->nr_bytes, "nr_batches", (json_int_t)r->nr_batches,
			  "nr_waits", (json_int_t)r->nr_waits, "nr_epochs",
			  (json_int_t)r->nr_epochs, "nr_refused", (json_int_t)r->nr_refused,
			  "too_large", (json_int_t)r->nr_too_large));
	return md_cli_json_print(root);
}

static void note(const struct md_push_report *r)
{
	if (r->nr_epochs)
		md_cli_note("the store is a copy of one that the fleet knows: what it had until "
			    "now is not sent again");
	if (r->nr_refused)
		md_cli_note("the server refuses the counts of %zu modules: %s", r->nr_refused,
			    r->refused);
	if (r->nr_too_large)
		md_cli_note("%zu chunks have more counts than a server takes, and were left out",
			    r->nr_too_large);
}

int md_fleet_command_push(int argc, char **argv)
{
	struct options o = {.give_up_s = MD_FLEET_GIVE_UP_S,
			    .first_wait_s = MD_FLEET_RETRY_S,
			    .batch_kib = MD_FLEET_BATCH_KIB};
	struct md_push_options push = {0};
	struct md_push_report report;
	struct mp_store *store;
	struct mp_err err = {""};
	int r;

	md_fleet_options(&usage, argc, argv, &o);
	r = configure(&o, &push);
	if (!r)
		r = read_machine(o.machine_id, &push);
	if (!r)
		r = open_store(o.db, &store);
	if (r)
		return r;
	r = md_push_run(&push, store, &report, &err);
	note(&report);
	mp_store_close(store);
	if (!r)
		return print(&o, &report);
	return md_fleet_failed(r, &err);
}
