// SPDX-License-Identifier: Apache-2.0
/* service - the service's life: configuration, source, waiting; see service.h. */
#include "daemon/morphd/service.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/morphd/choose.h"
#include "daemon/morphd/collect.h"
#include "daemon/morphd/message.h"
#include "daemon/morphd/notify.h"
#include "daemon/morphd/signals.h"
#include "daemon/morphd/source_open.h"
#include "daemon/morphd/source_wait.h"
#include "daemon/morphd/watchdog.h"
#include "libprof/base/clock.h"
#include "libprof/cli/exit_status.h"

/* Time between two checks whether sampling has become possible. */
#define CHECK_NS UINT64_C(5000000000)

/* Samples of a file: several times as many as a training of some seconds takes. */
#define WAYS_A_DAY 32768

/* Exit status that makes systemd restart the unit, so that the device can be opened. */
#define EXIT_START_AGAIN 75

struct service {
	const struct md_options *o;
	struct md_config config; /* in force */
	struct md_config next;	 /* read at SIGHUP, to be used if @change */
	/* the source or the rate changes: store the collected samples first */
	bool change;
	bool restart;		   /* only a restart can open the device that appeared */
	char missing[MP_ERR_SIZE]; /* why sampling is impossible, while morphd waits */
	struct md_watchdog watchdog;
	struct md_pipeline pl;
};

static int load_config(const struct md_options *o, struct md_config *out, struct mp_err *err)
{
	int ret = 0;

	md_config_init(out);
	if (o->config)
		ret = md_config_read(o->config, out, err);
	if (!ret)
		md_config_override(out, &o->line);
	return ret;
}

static void notify_status(const struct service *s, const char *state)
{
	const struct md_pipeline *pl = &s->pl;
	struct md_recfile_info info;

	if (!pl->source) {
		md_notify("%sSTATUS=not collecting: %s", state, s->missing);
		return;
	}
	md_source_describe(pl->source, &info);
	md_notify("%sSTATUS=%s, %u Hz: %" PRIu64 " samples of %zu modules, %" PRIu64 " lost", state,
		  pl->source->ops->name, info.rate_hz,
		  pl->total.emitted - md_ledger_lost(&pl->total), md_pipeline_nr_modules(pl),
		  md_ledger_lost(&pl->total));
}

static void service_warn(void *arg, const char *message)
{
	char line[256];
	size_t i;

	(void)arg;
	md_message(message);
	/* A file name may contain a newline, and systemd would interpret the text behind it. */
	snprintf(line, sizeof(line), "%s", message);
	for (i = 0; line[i]; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	md_notify("STATUS=%s", line);
}

static void service_flushed(void *arg)
{
	notify_status(arg, "");
}

static void service_step(void *arg)
{
	struct service *s = arg;

	md_watchdog_step(&s->watchdog);
}

/* Takes over the new configuration as a whole, or keeps the old one. */
static void reload(struct service *s)
{
	const struct md_options *o = s->o;
	struct mp_err err = {{0}};
	int ret = 0;

	md_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, mp_now_ns() / 1000);
	if (!o->config)
		ret = mp_err_set(&err, ENOENT,
				 "SIGHUP: without --config there is no "
				 "configuration to read again");
	if (!ret)
		ret = load_config(o, &s->next, &err);
	if (!ret && strcmp(s->next.database, s->config.database))
		ret = mp_err_set(&err, EBUSY,
				 "%.100s: the database cannot change while morphd runs", o->config);
	if (!ret && s->pl.source && md_config_needs_source(&s->config, &s->next)) {
		if (o->record || o->input)
			ret = mp_err_set(&err, EBUSY,
					 "%.100s: source and rate cannot change within a recording",
					 o->config);
		else
			s->change = true;
	}
	if (ret) {
		md_message(err.msg);
		md_message("the old settings stay in force");
		notify_status(s, "READY=1\n");
	} else if (!s->change) {
		s->config = s->next;
		s->pl.interval_s = s->config.interval_s;
		fprintf(stderr, "morphd: %s: read again\n", o->config);
		notify_status(s, "READY=1\n");
	}
}

static bool service_should_stop(void *arg)
{
	struct service *s = arg;

	if (md_reload_requested && !md_stop_requested) {
		md_reload_requested = 0;
		reload(s);
	}
	return md_stop_requested || s->change;
}

/*
 * The promised share excludes the start: reading all processes takes a second of processor time
 * per thousand processes with many mappings each.
 */
static void log_start_cost(void)
{
	fprintf(stderr,
		"morphd: starting took %.2f s of processor time, not counted in that share: to "
		"measure the cost of a sample and to look at running processes\n",
		(double)mp_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
}

/* Sleeps until the next check. A signal ends it, even one that came just before. */
static void sleep_until_next_check(const struct service *s)
{
	uint64_t ns = CHECK_NS;
	struct timespec left;
	sigset_t stop, before;

	if (s->watchdog.pause_ns && s->watchdog.pause_ns < ns)
		ns = s->watchdog.pause_ns;
	left = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGHUP);
	sigprocmask(SIG_BLOCK, &stop, &before);
	if (!md_stop_requested && !md_reload_requested)
		ppoll(NULL, 0, &left, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Reports a reason only once. */
static void report_missing(struct service *s, const char *why)
{
	if (strcmp(s->missing, why)) {
		snprintf(s->missing, sizeof(s->missing), "%s", why);
		fprintf(stderr, "morphd: not collecting: %s\n", why);
		fprintf(stderr, "morphd: collecting starts by itself once it is possible\n");
	}
	notify_status(s, "READY=1\n");
}

static int open_source(struct service *s, const struct md_config *config, struct mp_err *err)
{
	return md_source_open_for_service(s->o, config, &s->pl.source, &s->pl.wants_ways, err);
}

/*
 * With --wait, tries again until a source opens. Return: 0 with s->pl.source, or without one if
 * morphd is to end; -errno without --wait.
 */
static int open_or_wait(struct service *s, struct mp_err *err)
{
	struct md_source_wait wait;
	int ret = open_source(s, &s->config, err);

	if (!ret || !s->o->wait || s->o->input)
		return ret;
	md_source_wait_start(&wait);
	report_missing(s, err->msg);
	while (!md_stop_requested) {
		bool reloaded = md_reload_requested;

		md_reload_requested = 0;
		if (reloaded)
			reload(s);
		if (reloaded || md_source_wait_is_due(&wait)) {
			ret = open_source(s, &s->config, err);
			s->restart = ret && md_source_wait_needs_restart(&wait);
			if (!ret || s->restart)
				break;
			md_source_wait_failed(&wait);
			report_missing(s, err->msg);
		}
		md_watchdog_step(&s->watchdog);
		sleep_until_next_check(s);
	}
	if (!s->pl.source)
		md_notify("STOPPING=1");
	s->missing[0] = 0;
	return 0;
}

/*
 * The old source's counts are in the database. Close it first, because a device may have only
 * one reader.
 */
static int change_source(struct service *s, struct mp_err *err)
{
	const char *remark = s->pl.source->ops->remark(s->pl.source);
	int ret;

	if (remark)
		md_message(remark);
	md_modcache_gather_rows(s->pl.at.modcache);
	s->pl.source->ops->close(s->pl.source);
	s->pl.source = NULL;
	ret = open_source(s, &s->next, err);
	if (ret) {
		md_message(err->msg);
		md_message("the old source stays in use");
		ret = open_or_wait(s, err);
	} else {
		s->config = s->next;
		fprintf(stderr, "morphd: %s: read again; the source is new\n", s->o->config);
	}
	if (ret || !s->pl.source)
		return ret;
	s->pl.interval_s = s->config.interval_s;
	ret = md_pipeline_change(&s->pl, s->pl.source, err);
	if (!ret)
		notify_status(s, "READY=1\n");
	return ret;
}

static int service_work(struct md_pipeline *pl, struct mp_err *err)
{
	struct service *s = pl->arg;
	int ret;

	notify_status(s, "READY=1\n");
	for (;;) {
		ret = md_pipeline_run(pl, err);
		if (md_stop_requested || !s->change)
			break;
		s->change = false;
		if (!ret) {
			ret = change_source(s, err);
		} else if (md_pipeline_is_temporary(ret)) {
			/* Keep the counts and the old source. */
			md_message(err->msg);
			md_message("the old settings stay in force");
			notify_status(s, "READY=1\n");
			ret = 0;
		}
		if (ret || !pl->source)
			break;
	}
	md_notify("STOPPING=1");
	return ret;
}

int md_service_main(const struct md_options *o, int *status, struct mp_err *err)
{
	struct service *s = calloc(1, sizeof(*s));
	struct md_database db = {.lock.fd = -1};
	int ret;

	if (!s)
		return mp_err_set(err, ENOMEM, "out of memory");
	md_signals_catch();
	s->o = o;
	ret = load_config(o, &s->config, err);
	if (ret || o->check_config) {
		*status = ret ? MP_EXIT_USAGE : MP_EXIT_DONE;
		free(s);
		return ret;
	}
	md_watchdog_init(&s->watchdog);
	ret = md_database_open(o, &s->config, &db, err);
	if (!ret && !o->input)
		ret = md_database_log_state(&db, err);
	if (!ret)
		ret = open_or_wait(s, err);
	if (!ret && s->pl.source) {
		if (!o->input && !s->config.rate_hz)
			log_start_cost();
		s->pl.interval_s = s->config.interval_s;
		s->pl.ways_a_second = MD_WAYS_A_SECOND;
		s->pl.ways_a_day = WAYS_A_DAY;
		s->pl.should_stop = service_should_stop;
		s->pl.warn = service_warn;
		s->pl.flushed = service_flushed;
		s->pl.step = service_step;
		s->pl.arg = s;
		ret = md_collect(o, &s->pl, &db, service_work, err);
	}
	if (s->pl.source)
		s->pl.source->ops->close(s->pl.source);
	if (!ret && s->restart)
		*status = EXIT_START_AGAIN;
	free(s);
	md_database_close(&db);
	return ret;
}
