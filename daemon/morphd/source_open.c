// SPDX-License-Identifier: Apache-2.0
/* source_open - opens the source that was asked for; see source_open.h. */
#include "daemon/morphd/source_open.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/morphd/choose.h"

/* Return: the source; NULL for "auto": the best one that works. */
static const struct md_source_ops *wanted_source(const char *input, const char *source)
{
	if (input)
		return &md_source_replay;
	return strcmp(source, "auto") ? md_source_find(source) : NULL;
}

/* @source: its name, or "auto" for the best one that works. Return: 0 or -errno. */
static int source_open_asked(const char *source, const struct md_source_config *config,
			     struct md_source **out, struct mp_err *err)
{
	const struct md_source_ops *ops = wanted_source(config->input, source);

	return ops ? ops->open(config, out, err) : md_choose_source(config, out, err);
}

/*
 * Chooses a rate whose cost is negligible. The cost of a sample is measured first, on this
 * process, with the source that will collect.
 */
static int open_with_measured_rate(const char *source, struct md_source_config *config,
				   struct md_source **out, struct mp_err *err)
{
	struct md_source_config mine = *config;
	const struct md_source_ops *ops;
	struct md_source *probe;
	struct md_cost cost;
	char choice[sizeof(probe->choice)];
	int ret;

	config->rate_hz = MD_RATE_UNMEASURED_HZ;
	mine.rate_hz = MD_MEASURING_HZ;
	mine.command = getpid();
	mine.is_probe = true;
	if (source_open_asked(source, &mine, &probe, err))
		/* its error message says what is missing */
		return source_open_asked(source, config, out, err);
	ret = md_choose_measure(probe, config->registers == MORPH_REGS_BRANCHES, &cost, err);
	if (ret) {
		snprintf(choice, sizeof(choice), "%s", probe->choice);
		fprintf(stderr, "morphd: what a sample costs cannot be measured: %s\n", err->msg);
	} else {
		config->rate_hz = probe->fixed_hz ? probe->fixed_hz : md_choose_rate(&cost);
		md_choose_describe(&cost, config->rate_hz, probe->choice, choice, sizeof(choice));
		fprintf(stderr, "morphd: %s\n", choice);
	}
	ops = probe->ops;
	if (ops->is_exclusive)
		ops->close(probe);
	ret = ops->open(config, out, err);
	if (!ret)
		memcpy((*out)->choice, choice, sizeof(choice));
	if (!ops->is_exclusive)
		ops->close(probe);
	return ret;
}

/* A recording would hold the registers, and a replay has those that were recorded. */
static bool tries_ways(const struct md_options *o, const struct md_config *config)
{
	return !o->record && !o->input && md_config_wants_ways(config);
}

int md_source_open_for_run(const struct md_options *o, struct md_source_config *asked,
			   struct md_source **out, bool *ways, struct mp_err *err)
{
	*ways = o->line.ways;
	if (tries_ways(o, &o->line)) {
		asked->registers = MORPH_REGS_BRANCHES;
		if (!source_open_asked(o->line.source, asked, out, err)) {
			*ways = true;
			return 0;
		}
		asked->registers = 0;
	}
	return source_open_asked(o->line.source, asked, out, err);
}

static int open_service_source(const char *source, struct md_source_config *asked,
			       struct md_source **out, struct mp_err *err)
{
	return asked->input || asked->rate_hz ? source_open_asked(source, asked, out, err)
					      : open_with_measured_rate(source, asked, out, err);
}

int md_source_open_for_service(const struct md_options *o, const struct md_config *config,
			       struct md_source **out, bool *ways, struct mp_err *err)
{
	struct md_source_config asked = {
		.rate_hz = config->rate_hz,
		.no_kernel = config->no_kernel,
		.registers = config->registers,
		.stacks = config->stacks,
		.input = o->input,
		.nr_repeats = o->nr_repeats,
	};

	*ways = config->ways;
	if (tries_ways(o, config)) {
		asked.registers = MORPH_REGS_BRANCHES;
		if (!open_service_source(config->source, &asked, out, err)) {
			*ways = true;
			return 0;
		}
		asked.registers = 0;
		asked.rate_hz = config->rate_hz;
	}
	return open_service_source(config->source, &asked, out, err);
}
