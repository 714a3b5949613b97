// SPDX-License-Identifier: Apache-2.0
/* push_command - the command "push": options, messages and exit status; see push.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "daemon/fleet/client_command.h"
#include "daemon/fleet/push.h"
#include "daemon/stats/stats.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

#define GIVE_UP_S 300
/* The server decodes and checks so much in some 50 ms. */
#define BATCH_KIB    48
#define FIRST_WAIT_S 1

struct options {
	struct md_fleet_access access;
	const char *db, *rate, *names, *contexts, *salt_file, *machine_id;
	double give_up_s, first_wait_s, batch_kib;
	bool sparing, json;
};

enum {
	KEY_DB = 256,
	KEY_RATE,
	KEY_BATCH,
	KEY_NAMES,
	KEY_CONTEXTS,
	KEY_SALT,
	KEY_GIVE_UP,
	KEY_RETRY,
	KEY_MACHINE,
	KEY_SPARING,
	KEY_JSON
};

static const struct argp_option option_table[] = {
	{"db", KEY_DB, "FILE", 0, "The store to send (default: see FILES in the man page)", 0},
	{"rate", KEY_RATE, "KIB", 0, "Send at most so many KiB per second", 0},
	{"batch", KEY_BATCH, "KIB", 0, "Send at most so many KiB in one transaction (default: 48)",
	 0},
	{"names", KEY_NAMES, "HOW", 0,
	 "Send names of files hashed (default; not at all without a salt), plain, or no", 0},
	{"contexts", KEY_CONTEXTS, "WHEN", 0,
	 "Send paths, calling contexts and sampled calls daily (default: those of a day when it is "
	 "over), always, or no",
	 0},
	{"salt-file", KEY_SALT, "FILE", 0, "The salt of hashed names, the same on all hosts", 0},
	{"give-up", KEY_GIVE_UP, "SECONDS", 0, "Try so long to reach the server (default: 300)", 0},
	{"retry", KEY_RETRY, "SECONDS", 0, "The first wait between attempts (default: 1)", 0},
	{"machine-id", KEY_MACHINE, "FILE", 0,
	 "What tells this machine from others (default: /etc/machine-id)", 0},
	{"sparing", KEY_SPARING, NULL, 0,
	 "Send most counts of today when the day is over, not each time", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &o->access; return 0;
	case KEY_DB: o->db = arg; return 0;
	case KEY_RATE: o->rate = arg; return 0;
	case KEY_BATCH:
		o->batch_kib =
			md_fleet_number(state, "batch", arg, 1, MP_FLEET_BATCH_BYTES_MAX >> 10);
		return 0;
	case KEY_NAMES: o->names = arg; return 0;
	case KEY_CONTEXTS: o->contexts = arg; return 0;
	case KEY_SALT: o->salt_file = arg; return 0;
	case KEY_GIVE_UP: o->give_up_s = md_fleet_number(state, "give-up", arg, 0, 1e6); return 0;
	case KEY_RETRY:
		o->first_wait_s = md_fleet_number(state, "retry", arg, 0.001, 1e6);
		return 0;
	case KEY_MACHINE: o->machine_id = arg; return 0;
	case KEY_SPARING: o->sparing = true; return 0;
	case KEY_JSON: o->json = true; return 0;
	case ARGP_KEY_ARG: argp_error(state, "%s: no argument is expected", arg); return EINVAL;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&md_fleet_access_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	option_table,
	parse,
	NULL,
	"Send the counts of this host's store that the fleet's server lacks. May be killed at any "
	"moment: the next push continues.\v"
	"Build-ids, hashes and counts leave the host, and nothing else that is not configured. "
	"Exit status: 0 done, 1 failed, 2 usage, 3 no store, 75 the server is gone or takes no more "
	"today.",
	children,
	NULL,
	NULL};

static int usage(const char *option, const char *value, const struct mp_err *err)
{
	md_stats_fail("--%s=%s: %s", option, value, err->msg);
	return MD_FLEET_USAGE;
}

/* The options override the file. */
static int configure(struct options *o, struct md_push_options *push)
{
	struct md_fleet_config *config = &o->access.config;
	struct mp_err err = {""};
	int r = md_fleet_access_find(&o->access);

	if (r)
		return r;
	if (o->rate && md_fleet_config_set(config, "rate", o->rate, &err))
		return usage("rate", o->rate, &err);
	if (o->names && md_fleet_config_set(config, "names", o->names, &err))
		return usage("names", o->names, &err);
	if (o->contexts && md_fleet_config_set(config, "contexts", o->contexts, &err))
		return usage("contexts", o->contexts, &err);
	if (o->salt_file && md_fleet_config_set(config, "salt-file", o->salt_file, &err))
		return usage("salt-file", o->salt_file, &err);
	push->database = config->database;
	push->names.how = config->names;
	push->contexts = config->contexts;
	push->bytes_per_s = (uint64_t)(config->rate * 1024);
	push->batch_bytes = (size_t)(o->batch_kib * 1024);
	push->give_up_s = o->give_up_s;
	push->first_wait_s = o->first_wait_s;
	push->sparing = o->sparing;
	if (config->salt_file[0] && md_file_names_read_salt(&push->names, config->salt_file, &err))
		return md_stats_fail("%s", err.msg);
	return 0;
}

/* Without an id, only the server's token tells copies of the store apart. */
static int read_machine(const char *path, struct md_push_options *push)
{
	int r = mp_machine_id_read(path, push->machine);

	(void)mp_machine_id_read(NULL, push->own_machine);
	return r && path ? md_stats_fail("%s: %s", path, strerror(-r)) : 0;
}

/*
 * Opens the store, which must exist. One push at a time works on a store: the lock lasts until the
 * process ends. The descriptor stays open, since closing any of a file drops SQLite's locks of it.
 */
static int open_store(const char *db, struct mp_store **out)
{
	char path[4096];
	struct mp_err err = {""};
	int fd, r = 0;

	if (!db)
		r = mp_store_default_path(path, sizeof(path), false, &err);
	if (r)
		return md_stats_fail("%s", err.msg);
	db = db ? db : path;
	fd = open(db, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		r = errno == ENOENT ? MD_FLEET_NO_PROFILE : MD_FLEET_FAILED;
		md_stats_fail("%s: %s", db, errno == ENOENT ? "no such database" : strerror(errno));
		return r;
	}
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		md_stats_fail("%s: another push is sending it", db);
		return MD_FLEET_LATER;
	}
	return mp_store_open(db, MP_STORE_WRITE, out, &err) ? md_stats_fail("%s", err.msg) : 0;
}

static int print(const struct options *o, const struct md_push_report *r)
{
	json_t *root;

	if (!o->json) {
		printf("%zu rows of %zu modules sent: %" PRIu64 " bytes of counts in %zu batches\n",
		       r->nr_rows, r->nr_modules, r->nr_bytes, r->nr_batches);
		return md_stats_finish(MD_FLEET_DONE);
	}
	root = md_stats_json_new("push");
	json_object_set_new(root, "rows", json_integer((json_int_t)r->nr_rows));
	json_object_set_new(root, "nr_modules", json_integer((json_int_t)r->nr_modules));
	json_object_set_new(root, "bytes", json_integer((json_int_t)r->nr_bytes));
	json_object_set_new(root, "nr_batches", json_integer((json_int_t)r->nr_batches));
	json_object_set_new(root, "nr_waits", json_integer((json_int_t)r->nr_waits));
	json_object_set_new(root, "nr_epochs", json_integer((json_int_t)r->nr_epochs));
	json_object_set_new(root, "nr_refused", json_integer((json_int_t)r->nr_refused));
	json_object_set_new(root, "too_large", json_integer((json_int_t)r->nr_too_large));
	return md_stats_json_print(root);
}

static void note(const struct md_push_report *r)
{
	if (r->nr_epochs)
		md_stats_note("the store is a copy of one that the fleet knows: what it had until "
			      "now is not sent again");
	if (r->nr_refused)
		md_stats_note("the server refuses the counts of %zu modules: %s", r->nr_refused,
			      r->refused);
	if (r->nr_too_large)
		md_stats_note("%zu chunks have more counts than a server takes, and were left out",
			      r->nr_too_large);
}

int md_fleet_command_push(int argc, char **argv)
{
	struct options o = {
		.give_up_s = GIVE_UP_S, .first_wait_s = FIRST_WAIT_S, .batch_kib = BATCH_KIB};
	struct md_push_options push = {0};
	struct md_push_report report;
	struct mp_store *store;
	struct mp_err err = {""};
	int r;

	md_stats_set_program(argv[0]);
	mp_args_parse(&argp, argc, argv, 0, &o);
	mp_stdio_parsed();
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
	md_stats_fail("%s", err.msg);
	return r == -EAGAIN ? MD_FLEET_LATER : MD_FLEET_FAILED;
}
