// SPDX-License-Identifier: Apache-2.0
/* trial_state - writes a trial as JSON, and adds its pairs again; see trial_state.h. */
#include "libprof/trial/trial_state.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/infile.h"
#include "libprof/base/outfile.h"
#include "libprof/trial/trial_private.h"

#define SCHEMA 1
/* Seventeen digits are enough for any number to be read as the same. */
#define PRECISE JSON_REAL_PRECISION(17)

/* A block: CPU time, processes, crashes, then the counts. */
static json_t *block_to_json(const struct mp_trial_block *b, size_t nr_counters)
{
	json_t *out =
		json_pack("[fII]", b->cpu_s, (json_int_t)b->processes, (json_int_t)b->crashes);

	for (size_t i = 0; out && i < nr_counters; i++)
		if (json_array_append_new(out, json_integer((json_int_t)b->counts[i]))) {
			json_decref(out);
			return NULL;
		}
	return out;
}

/* A pair: the version in its first block, then the blocks. */
static json_t *pairs_to_json(const struct mp_trial *t)
{
	json_t *out = json_array();

	for (uint32_t i = 0; out && i < t->nr; i++) {
		const struct mp_trial_pair *p = &t->pairs[i];
		json_t *pair = json_pack("[ioo]", p->first,
					 block_to_json(&p->blocks[0], t->config.nr_counters),
					 block_to_json(&p->blocks[1], t->config.nr_counters));

		if (json_array_append_new(out, pair)) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *weights_to_json(const struct mp_trial_config *c)
{
	json_t *out = json_array();

	for (size_t i = 0; out && i < c->nr_counters; i++)
		if (json_array_append_new(out, json_real(c->weights[i]))) {
			json_decref(out);
			return NULL;
		}
	return out;
}

int mp_trial_to_text(const struct mp_trial *t, char **text)
{
	const struct mp_trial_config *c = &t->config;
	json_t *root = json_pack("{si sf so sf sI sI sI si so}", "schema", SCHEMA, "alpha",
				 c->alpha, "weights", weights_to_json(c), "least_work",
				 c->least_work, "least_processes", (json_int_t)c->least_processes,
				 "max_pairs", (json_int_t)c->max_pairs, "abandoned",
				 (json_int_t)t->nr_abandoned, "drawn", t->drawn, "pairs",
				 pairs_to_json(t));

	*text = root ? json_dumps(root, JSON_COMPACT | PRECISE) : NULL;
	json_decref(root);
	return *text ? 0 : -ENOMEM;
}

/* Return: a number from 0 to @most, or -1. */
static json_int_t whole_number(const json_t *value, json_int_t most)
{
	json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

	return number <= most ? number : -1;
}

static bool read_block(const json_t *in, size_t nr_counters, struct mp_trial_block *out)
{
	json_int_t processes = whole_number(json_array_get(in, 1), INT64_MAX);
	json_int_t crashes = whole_number(json_array_get(in, 2), INT64_MAX);
	bool good = json_array_size(in) == 3 + nr_counters && processes >= 0 && crashes >= 0 &&
		    json_is_number(json_array_get(in, 0));

	*out = (struct mp_trial_block){.cpu_s = json_number_value(json_array_get(in, 0)),
				       .processes = (uint64_t)processes,
				       .crashes = (uint64_t)crashes};
	for (size_t i = 0; good && i < nr_counters; i++) {
		json_int_t count = whole_number(json_array_get(in, 3 + i), INT64_MAX);

		good = count >= 0;
		out->counts[i] = (uint64_t)count;
	}
	return good;
}

static bool read_config(const json_t *root, struct mp_trial_config *out)
{
	const json_t *weights = json_object_get(root, "weights");
	const json_t *alpha = json_object_get(root, "alpha");
	const json_t *least_work = json_object_get(root, "least_work");
	json_int_t processes = whole_number(json_object_get(root, "least_processes"), INT64_MAX);
	json_int_t pairs = whole_number(json_object_get(root, "max_pairs"), MP_TRIAL_MAX_PAIRS);
	bool good = whole_number(json_object_get(root, "schema"), SCHEMA) == SCHEMA &&
		    json_is_number(alpha) && json_is_number(least_work) && processes >= 0 &&
		    pairs >= 0 && json_array_size(weights) <= MP_TRIAL_NR_COUNTERS;

	*out = (struct mp_trial_config){.alpha = json_number_value(alpha),
					.least_work = json_number_value(least_work),
					.least_processes = (uint64_t)processes,
					.max_pairs = (uint32_t)pairs};
	for (size_t i = 0; good && i < json_array_size(weights); i++) {
		good = json_is_number(json_array_get(weights, i));
		out->weights[out->nr_counters++] = json_number_value(json_array_get(weights, i));
	}
	return good;
}

/* Return: 0, -EBADMSG, -ENOMEM. */
static int add_pair(struct mp_trial *t, const json_t *pair)
{
	json_int_t first = whole_number(json_array_get(pair, 0), 1);
	struct mp_trial_block blocks[2];
	int rc;

	if (json_array_size(pair) != 3 || first < 0 ||
	    !read_block(json_array_get(pair, 1), t->config.nr_counters, &blocks[0]) ||
	    !read_block(json_array_get(pair, 2), t->config.nr_counters, &blocks[1]) ||
	    mp_trial_draw(t, first) < 0)
		return -EBADMSG;
	rc = mp_trial_add_pair(t, blocks);
	return !rc || rc == -ENOMEM ? rc : -EBADMSG;
}

/*
 * Does again what the trial @t did. Pairs that were abandoned taught nothing, so they may all come
 * first: only their number ends a trial.
 */
static int replay(struct mp_trial *t, const json_t *root)
{
	const json_t *pairs = json_object_get(root, "pairs");
	const json_t *drawn = json_object_get(root, "drawn");
	json_int_t abandoned =
		whole_number(json_object_get(root, "abandoned"), (json_int_t)t->config.max_pairs);
	int rc = 0;

	if (!json_is_array(pairs) || abandoned < 0 || !json_is_integer(drawn) ||
	    json_integer_value(drawn) < -1 || json_integer_value(drawn) > 1 ||
	    json_array_size(pairs) + (size_t)abandoned + (json_integer_value(drawn) >= 0) >
		    t->config.max_pairs)
		return -EBADMSG;
	for (json_int_t i = 0; i < abandoned; i++) {
		mp_trial_draw(t, false);
		mp_trial_abandon(t);
	}
	/* Rules of an earlier release may not have ended it where those of today do: then the rest is no part of it. */
	for (size_t i = 0;
	     !rc && i < json_array_size(pairs) && mp_trial_verdict(t) == MP_TRIAL_RUNNING; i++)
		rc = add_pair(t, json_array_get(pairs, i));
	if (!rc && json_integer_value(drawn) >= 0)
		mp_trial_draw(t, json_integer_value(drawn));
	return rc;
}

int mp_trial_from_text(const char *text, size_t size, struct mp_trial **out, struct mp_err *err)
{
	struct mp_trial_config config;
	json_t *root = NULL;
	int rc = -EBADMSG;

	*out = NULL;
	if (size <= MP_TRIAL_STATE_MAX)
		root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	if (root && read_config(root, &config)) {
		rc = mp_trial_new(&config, out);
		if (!rc)
			rc = replay(*out, root);
	}
	json_decref(root);
	if (!rc)
		return 0;
	mp_trial_free(*out);
	*out = NULL;
	if (rc == -ENOMEM)
		return mp_err_code(err, ENOMEM);
	return mp_err_set(err, EBADMSG, "this is no saved trial");
}

int mp_trial_save(const struct mp_trial *t, const char *path, struct mp_err *err)
{
	struct mp_outfile out;
	char *text;
	int rc = mp_trial_to_text(t, &text);

	if (rc)
		return mp_err_code(err, -rc);
	rc = mp_outfile_open(path, NULL, &out, err);
	if (!rc) {
		fputs(text, out.file);
		fputc('\n', out.file);
		rc = mp_outfile_commit(&out, err);
	}
	free(text);
	return rc;
}

int mp_trial_load(const char *path, struct mp_trial **out, struct mp_err *err)
{
	uint64_t size;
	int rc, fd = mp_infile_regular(path, &size, err);
	char *text = NULL;
	FILE *in;

	*out = NULL;
	if (fd < 0)
		return fd;
	in = fdopen(fd, "r");
	if (!in) {
		close(fd);
		return mp_err_code(err, ENOMEM);
	}
	if (size <= MP_TRIAL_STATE_MAX)
		text = malloc(size + 1);
	if (size > MP_TRIAL_STATE_MAX)
		rc = mp_err_set(err, EBADMSG, "too long for a saved trial");
	else if (!text)
		rc = mp_err_code(err, ENOMEM);
	else if (size = fread(text, 1, size, in), ferror(in))
		rc = mp_err_code(err, EIO);
	else
		rc = mp_trial_from_text(text, size, out, err);
	if (rc == -EBADMSG)
		rc = mp_err_set(err, EBADMSG, "%s: this is no saved trial", path);
	free(text);
	fclose(in);
	return rc;
}
