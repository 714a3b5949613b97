// SPDX-License-Identifier: Apache-2.0
/* audit_metric - names, values and units of the metrics. */
#include "editor/audit/run/audit_metric.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "editor/audit/run/audit_run.h"

static const char *const names[] = {
	[ME_METRIC_CPU] = "cpu",
	[ME_METRIC_USER] = "user",
	[ME_METRIC_WALL] = "wall",
};

int me_metric_parse(struct me_metric *metric, const char *text, struct mp_err *err)
{
	metric->higher_is_better = false;
	for (int kind = ME_METRIC_CPU; kind <= ME_METRIC_WALL; kind++)
		if (!strcmp(text, names[kind])) {
			metric->kind = (enum me_metric_kind)kind;
			return 0;
		}
	if (!me_pattern_is(text))
		return mp_err_set(err, EINVAL, "'%s' is not cpu, user, wall or /REGEX/", text);
	metric->kind = ME_METRIC_PATTERN;
	metric->higher_is_better = true;
	return me_pattern_parse(&metric->pattern, text, err);
}

void me_metric_fini(struct me_metric *metric)
{
	me_pattern_fini(&metric->pattern);
	me_pattern_fini(&metric->requests);
}

const char *me_metric_name(const struct me_metric *metric)
{
	return metric->kind == ME_METRIC_PATTERN ? metric->pattern.text : names[metric->kind];
}

const char *me_metric_title(const struct me_metric *metric, bool server)
{
	static const char *const of_run[] = {
		[ME_METRIC_CPU] = "CPU time (user + system)",
		[ME_METRIC_USER] = "user time",
		[ME_METRIC_WALL] = "elapsed time",
	};
	static const char *const of_server[] = {
		[ME_METRIC_CPU] = "CPU time (user + system) of the server",
		[ME_METRIC_USER] = "user time of the server",
		[ME_METRIC_WALL] = "elapsed time of the client",
	};

	if (metric->kind == ME_METRIC_PATTERN)
		return metric->pattern.text;
	return (server ? of_server : of_run)[metric->kind];
}

const char *me_metric_unit(const struct me_metric *metric)
{
	if (metric->kind == ME_METRIC_PATTERN)
		return metric->unit ? metric->unit : "";
	return metric->requests.text ? "ns/request" : "ns";
}

bool me_metric_is_time(const struct me_metric *metric)
{
	return metric->kind != ME_METRIC_PATTERN && !metric->requests.text;
}

int me_metric_value(const struct me_metric *metric, const struct me_run *run, double *value,
		    struct mp_err *err)
{
	uint64_t ns = metric->kind == ME_METRIC_WALL   ? run->wall_ns
		      : metric->kind == ME_METRIC_USER ? run->user_ns
						       : run->cpu_ns;

	if (run->no_number[0])
		return mp_err_set(err, EINVAL, "%s", run->no_number);
	if (metric->kind == ME_METRIC_PATTERN)
		*value = run->numbers[ME_RUN_METRIC];
	else
		*value = (double)(ns ? ns : 1000); /* less than the clock's unit, a microsecond */
	if (metric->requests.text)
		*value /= run->numbers[ME_RUN_REQUESTS];
	return 0;
}

double me_metric_ratio(const struct me_metric *metric, double a, double b)
{
	return metric->higher_is_better ? log(b / a) : log(a / b);
}

struct me_metric_scale me_metric_scale(const struct me_metric *metric, double value)
{
	bool each = metric->requests.text;
	double size = fabs(value);

	if (metric->kind == ME_METRIC_PATTERN)
		return (struct me_metric_scale){1,
						size >= 1000  ? 0
						: size >= 100 ? 1
						: size >= 1   ? 3
							      : 6,
						me_metric_unit(metric)};
	if (size >= 1e9)
		return (struct me_metric_scale){1e-9, 3, each ? "s/request" : "s"};
	if (size >= 1e6)
		return (struct me_metric_scale){1e-6, 2, each ? "ms/request" : "ms"};
	return (struct me_metric_scale){1e-3, each && size < 1e5 ? 3 : 1,
					each ? "us/request" : "us"};
}

void me_metric_put(FILE *out, const struct me_metric *metric, double value, int width)
{
	struct me_metric_scale scale = me_metric_scale(metric, value);

	/* Numbers far from 1 need an exponent. */
	if (metric->kind == ME_METRIC_PATTERN && (value >= 1e12 || value < 1e-3))
		fprintf(out, "%*g", width, value);
	else
		fprintf(out, "%*.*f", width, scale.decimals, scale.factor * value);
	if (metric->kind != ME_METRIC_PATTERN)
		fprintf(out, " %.*s", (int)strcspn(scale.unit, "/"), scale.unit);
}
