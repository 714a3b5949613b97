// SPDX-License-Identifier: Apache-2.0
/* test_wording - gains in words: what is slower is not called faster. */
#include "daemon/morph/wording.h"
#include "tests/unit/suite.h"

static void gain_is(double ratio, double lowest, double highest, const char *words)
{
	struct mp_job_gain gain = {.ratio = ratio, .lowest = lowest, .highest = highest};
	char buf[MD_WORDING_MAX];

	ck_assert_str_eq(md_wording_gain(&gain, buf), words);
}

TEST(gain_says_faster_or_slower)
{
	gain_is(0, 0, 0, "not measured");
	gain_is(1.125, 1.057, 1.153, "12.5 % faster (5.7 to 15.3)");
	gain_is(0.959, 0.938, 0.98, "4.1 % slower (2.0 to 6.2)");
	gain_is(0.959, 0, 0, "4.1 % slower");
}
