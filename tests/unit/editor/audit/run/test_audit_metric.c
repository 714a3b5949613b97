// SPDX-License-Identifier: Apache-2.0
/* test_audit_metric - numbers in outputs, their units, and the ratio of two values. */
#include <math.h>

#include "editor/audit/run/audit_metric.h"
#include "editor/audit/run/audit_run.h"
#include "tests/unit/suite.h"

static int number_in(const char *text, const char *output, size_t size, double *number)
{
	AUTO(me_pattern_fini) struct me_pattern pattern = {0};
	struct mp_err err = {""};
	int ret;

	ck_assert_msg(!me_pattern_parse(&pattern, text, &err), "%s", err.msg);
	ret = me_pattern_number(&pattern, output, size, number, &err);
	ck_assert_int_eq(!ret, !err.msg[0]);
	return ret;
}

#define NUMBER(text, output) number_in(text, output, sizeof(output) - 1, &number)

TEST(pattern_takes_the_first_group_of_the_first_match)
{
	double number;

	ck_assert_int_eq(NUMBER("/a([0-9]+)b([0-9]+)/", "a1 a2b3 a4b5"), 0);
	ck_assert(number == 2);
	ck_assert_int_eq(NUMBER("/^x (.*)$/", "y 1\nx 2e3\nx 4\n"), 0);
	ck_assert(number == 2000);
	ck_assert_int_eq(NUMBER("/a/b ([0-9.]+)/", "a/b 1.5"), 0);
	ck_assert(number == 1.5);
	ck_assert_int_eq(NUMBER("/x(.)/", "\0\0x7"), 0);
	ck_assert(number == 7);
	/* The output does not end in a zero byte. */
	ck_assert_int_eq(number_in("/x([0-9]*)/", "x123456", 4, &number), 0);
	ck_assert(number == 123);
}

TEST(pattern_refuses_what_is_no_positive_number)
{
	static const char *const bad[] = {"0",	    "-1",    "-0", "nan",    "inf",	"0x1",
					  "1,000",  "1 ",    "",   "1e-101", "1e101",	"1e400",
					  "1e-400", "1.2.3", "e",  "+",	     "infinity"};
	double number;
	char output[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(output, sizeof(output), "<%s>", bad[i]);
		ck_assert_msg(number_in("/<(.*)>/", output, strlen(output), &number) < 0, "%s",
			      bad[i]);
	}
	ck_assert_int_eq(NUMBER("/x(.)/", "y"), -ENOENT);
	ck_assert_int_eq(number_in("/x(.)/", NULL, 0, &number), -ENOENT);
	ck_assert_int_eq(NUMBER("/x(y)?/", "x"), -ENOENT);
}

TEST(pattern_of_another_form_is_refused)
{
	static const char *const bad[] = {
		"",    "/",	 "//",		"(.)",	    "/(.)",    "(.)/",	   "/a/",
		"/(/", "/(.)/i", "stdin:/(.)/", "/a\n(.)/", "stderr:", "stderr:/", "/[(.)/"};
	AUTO(me_pattern_fini) struct me_pattern pattern = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(me_pattern_parse(&pattern, bad[i], &err) == -EINVAL, "%s", bad[i]);
	ck_assert_int_eq(me_pattern_parse(&pattern, "stderr:/(.)/", &err), 0);
	ck_assert(pattern.from_stderr);
}

TEST(metric_ratio_is_above_zero_if_b_is_better)
{
	struct me_metric time = {.kind = ME_METRIC_WALL}, rate = {0}, cost = {0};

	ck_assert_int_eq(me_metric_parse(&rate, "/(.)/", &err), 0);
	ck_assert_int_eq(me_metric_parse(&cost, "/(.)/", &err), 0);
	cost.higher_is_better = false;
	ck_assert(rate.higher_is_better);
	ck_assert_double_eq_tol(me_metric_ratio(&time, 4, 2), log(2), 1e-12);
	ck_assert_double_eq_tol(me_metric_ratio(&rate, 2, 4), log(2), 1e-12);
	ck_assert_double_eq_tol(me_metric_ratio(&cost, 4, 2), log(2), 1e-12);
	ck_assert(isfinite(me_metric_ratio(&rate, ME_PATTERN_MIN, ME_PATTERN_MAX)));
	ck_assert(isfinite(me_metric_ratio(&rate, ME_PATTERN_MAX, ME_PATTERN_MIN)));
	me_metric_fini(&rate);
	me_metric_fini(&cost);
}

TEST(metric_value_is_per_request)
{
	AUTO(me_metric_fini) struct me_metric metric = {.kind = ME_METRIC_CPU};
	struct me_run run = {.cpu_ns = 3000, .numbers = {[ME_RUN_REQUESTS] = 4}};
	double value;

	ck_assert_str_eq(me_metric_unit(&metric), "ns");
	ck_assert(me_metric_is_time(&metric));
	ck_assert_int_eq(me_pattern_parse(&metric.requests, "/(.)/", &err), 0);
	ck_assert_int_eq(me_metric_value(&metric, &run, &value, &err), 0);
	ck_assert(value == 750);
	ck_assert_str_eq(me_metric_unit(&metric), "ns/request");
	ck_assert(!me_metric_is_time(&metric));
	ck_assert_str_eq(me_metric_scale(&metric, 2e6).unit, "ms/request");
	/* A time below the clock's unit is not 0. */
	run.cpu_ns = 0;
	ck_assert_int_eq(me_metric_value(&metric, &run, &value, &err), 0);
	ck_assert(value > 0);
	strcpy(run.no_number, "why");
	ck_assert_int_eq(me_metric_value(&metric, &run, &value, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "why");
}
