// SPDX-License-Identifier: Apache-2.0
/* package_fetch - see package_fetch.h. */
#include "daemon/fleet/packages/package_fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/worker/child.h"

#define LIMIT_S 1800
/* Room for curl's own messages. */
#define FILE_MIN 65536

/* Exit statuses of curl, which its manual page lists. */
enum {
	CURL_WRITE = 23,
	CURL_FSIZE = 63,
	CURL_HTTP = 22,
	CURL_NO_PROTOCOL = 1,
	CURL_BAD_URL = 3,
	ENV_NO_PROGRAM = 127
};

static int http_status(const char *path)
{
	FILE *f = fopen(path, "re");
	char text[16] = "";

	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = '\0';
		fclose(f);
	}
	return atoi(text);
}

/* Turns curl's exit status and the server's answer into a result. */
static int outcome(const struct md_child_result *result, const char *url, int http,
		   struct mp_err *err)
{
	if (result->end == MD_CHILD_STOPPED || result->end == MD_CHILD_ENOUGH)
		return mp_err_set(err, ECANCELED, "the work was stopped");
	if (result->end == MD_CHILD_LATE)
		return mp_err_set(err, EAGAIN, "%s: takes longer than %d s", url, LIMIT_S);
	/* It writes no more than it may. */
	if (result->end == MD_CHILD_DIED || result->status == CURL_FSIZE ||
	    result->status == CURL_WRITE)
		return mp_err_set(err, EBADMSG,
				  "%s: is larger than it should be, or the disk is full", url);
	if (!result->status)
		return http == 304;
	if (result->status == ENV_NO_PROGRAM)
		return mp_err_set(err, ENOSYS, "curl is not installed");
	if (result->status == CURL_NO_PROTOCOL || result->status == CURL_BAD_URL)
		return mp_err_set(err, EINVAL, "%s: %s", url, result->reason);
	if (result->status == CURL_HTTP && http >= 400 && http < 500 && http != 408 && http != 429)
		return mp_err_set(err, ENOENT, "%s: the server says %d", url, http);
	return mp_err_set(err, EAGAIN, "%s: %s", url,
			  result->reason[0] ? result->reason : "no answer");
}

int md_package_fetch_file(const struct md_package_fetch *fetch, const char *url, const char *out,
			  const char *older, uint64_t size_max, struct mp_err *err)
{
	char said[4200], messages[4200], limit[32];
	/* Links lead to http only, and no file of this machine is read. */
	char *argv[] = {"/usr/bin/env",
			"curl",
			"--disable",
			"--fail",
			"--silent",
			"--show-error",
			"--location",
			"--max-redirs",
			"5",
			"--proto",
			"=http,https",
			"--proto-redir",
			"=http,https",
			"--connect-timeout",
			"30",
			"--speed-limit",
			"1000",
			"--speed-time",
			"60",
			"--remote-time",
			"--netrc-optional",
			"--globoff",
			"--max-filesize",
			limit,
			"--write-out",
			"%{http_code}",
			"--output",
			(char *)out,
			"--url",
			(char *)url,
			older ? "--time-cond" : NULL,
			(char *)older,
			NULL};
	struct md_child child = {.argv = argv,
				 .out = said,
				 .messages = messages,
				 .limit_s = LIMIT_S,
				 .file_max = size_max > FILE_MIN ? size_max : FILE_MIN,
				 .look = fetch->look.look,
				 .look_arg = fetch->look.arg};
	struct md_child_result result;
	int r;

	snprintf(said, sizeof(said), "%s/fetched", fetch->dir);
	snprintf(messages, sizeof(messages), "%s/messages", fetch->dir);
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)size_max);
	unlink(said);
	r = md_child_run(&child, &result, err);
	if (r)
		return r;
	r = outcome(&result, url, http_status(said), err);
	if (r)
		unlink(out);
	return r;
}
