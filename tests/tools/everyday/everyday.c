// SPDX-License-Identifier: Apache-2.0
/*
 * everyday - the worker's eyes without the worker: takes windows of a version that counts, chooses a meter from them,
 * and decides trials, by the same code. Called by scripts/bench/meter, which runs the programs.
 *
 *	everyday windows FILE DIR [EXECUTED]
 *	everyday trial ALPHA LEAST-WORK MAX-PAIRS WEIGHT...
 *
 * windows: FILE counts, or carries a meter, into DIR. CPU time is that of the processes that execute FILE, or EXECUTED
 * if FILE is a library. trial: ALPHA 0: that of a machine's first trial. Each line of standard input is a command, and
 * is answered by a line of JSON:
 *
 *	skip		what was done until now belongs to no window
 *	look SECONDS	ends the window if it has this much CPU time, and tells its counts; else only its time
 *	choose PATH	writes the places of the meter that the worker would choose (a version that counts)
 *	place INDEX	the place of a counter (a version that counts)
 *	draw		which version the next pair begins with
 *	pair CPU PROCESSES COUNT... CPU PROCESSES COUNT...	both blocks, that of the original first
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/everyday/counting.h"
#include "daemon/everyday/cpu_time.h"
#include "libprof/note/edge_place.h"
#include "libprof/trial/trial.h"

struct windows {
	struct md_cpu_time *cpu_time;
	int watch;
	struct md_cpu_sum before;
	struct md_counting *counting; /* NULL: a meter */
	struct mp_edge_table *table;  /* of all counters; NULL: a meter */
	const char *dir;
	uint64_t table_hash;
	uint32_t nr;
	uint64_t last[MP_METER_PLACES_MAX], delta[MP_METER_PLACES_MAX];
};

static int fail(const struct mp_err *err)
{
	fprintf(stderr, "everyday: %s\n", err->msg);
	return EXIT_FAILURE;
}

/* ---- windows --------------------------------------------------------------------------------- */

static int open_meter(struct windows *w, const struct mp_edge_table *table, struct mp_err *err)
{
	if (table->nr_counters > MP_METER_PLACES_MAX)
		return mp_err_set(err, EBADMSG, "a meter with %u counters", table->nr_counters);
	w->table_hash = table->hash;
	w->nr = table->nr_counters;
	return md_count_dir_read(w->dir, w->table_hash, w->last, w->nr, err);
}

static int open_counters(struct windows *w, const char *file, struct mp_err *err)
{
	struct mp_edge_table *meter = NULL;
	struct mp_elf *elf = NULL;
	int ret = mp_elf_open(file, MP_ELF_SYMBOLS, &elf, err);

	if (!ret)
		ret = mp_meter_table_read(elf, &meter, err);
	if (!ret)
		ret = open_meter(w, meter, err);
	else if (ret == -ENOENT)
		ret = mp_edge_table_read(elf, &w->table, err)
			      ?: md_counting_new(file, w->dir, &w->counting, err);
	mp_edge_table_free(meter);
	mp_elf_close(elf);
	return ret;
}

static int read_cpu(struct windows *w, struct md_cpu_sum *sum, struct mp_err *err)
{
	int ret = md_cpu_time_read(w->cpu_time, w->watch, sum);

	return ret ? mp_err_set(err, -ret, "the time of processes: %s", strerror(-ret)) : 0;
}

static int open_windows(struct windows *w, const char *file, const char *executed,
			struct mp_err *err)
{
	dev_t dev;
	ino_t ino;
	int ret = open_counters(w, file, err);

	if (ret)
		return ret;
	w->cpu_time = md_cpu_time_open(err);
	if (!w->cpu_time)
		return -ENOTSUP;
	ret = md_cpu_time_number(executed, &dev, &ino);
	if (ret)
		return mp_err_set(err, -ret, "%s: %s", executed, strerror(-ret));
	w->watch = md_cpu_time_watch(w->cpu_time, dev, ino);
	return w->watch < 0 ? mp_err_code(err, ENOMEM) : read_cpu(w, &w->before, err);
}

static void close_windows(struct windows *w)
{
	md_counting_free(w->counting);
	mp_edge_table_free(w->table);
	md_cpu_time_close(w->cpu_time);
}

static int take_meter_window(struct windows *w, struct mp_err *err)
{
	uint64_t now[MP_METER_PLACES_MAX] = {0};
	int ret = md_count_dir_read(w->dir, w->table_hash, now, w->nr, err);

	for (uint32_t i = 0; !ret && i < w->nr; i++) {
		w->delta[i] = now[i] > w->last[i] ? now[i] - w->last[i] : 0;
		w->last[i] = now[i];
	}
	return ret;
}

static void print_counts(const uint64_t *delta, uint32_t nr)
{
	const char *comma = "";

	printf(", \"index\": [");
	for (uint32_t i = 0; i < nr; i++)
		if (delta[i]) {
			printf("%s%u", comma, i);
			comma = ",";
		}
	comma = "";
	printf("], \"counts\": [");
	for (uint32_t i = 0; i < nr; i++)
		if (delta[i]) {
			printf("%s%" PRIu64, comma, delta[i]);
			comma = ",";
		}
	printf("]");
}

static int look(struct windows *w, double least_s, bool skip, struct mp_err *err)
{
	struct md_cpu_sum sum;
	int ret = read_cpu(w, &sum, err);
	double cpu_s = (double)(sum.cpu_ns - w->before.cpu_ns) / 1e9;

	if (ret)
		return ret;
	if (skip)
		cpu_s = 0;
	printf("{\"cpu_s\": %.9f", cpu_s);
	if (skip || cpu_s >= least_s) {
		const uint64_t *delta = w->delta;

		/* Without time, md_counting_window() only takes note of the counts. */
		ret = w->counting ? md_counting_window(w->counting, cpu_s, err)
				  : take_meter_window(w, err);
		if (ret)
			return ret;
		if (w->counting)
			delta = md_counting_last(w->counting, &w->nr);
		printf(", \"user_s\": %.3f, \"system_s\": %.3f, \"processes\": %" PRIu64
		       ", \"incomplete\": %s",
		       (double)(sum.user_ns - w->before.user_ns) / 1e9,
		       (double)(sum.system_ns - w->before.system_ns) / 1e9,
		       sum.nr_exited - w->before.nr_exited, sum.incomplete ? "true" : "false");
		if (!skip)
			print_counts(delta, w->nr);
		w->before = sum;
	}
	puts("}");
	return 0;
}

static int choose(const struct windows *w, const char *path, struct mp_err *err)
{
	struct mp_meter m;
	double more;
	int ret = md_counting_meter(w->counting, path, &m, err), enough;

	if (ret && ret != -EAGAIN)
		return ret;
	enough = md_counting_is_enough(w->counting, &more, err);
	if (enough < 0)
		return enough;
	printf("{\"usable\": %s, \"enough\": %s, \"windows\": %zu, \"candidates\": %zu, \"rate\": %.0f",
	       m.usable ? "true" : "false", enough ? "true" : "false", m.nr_windows,
	       m.nr_candidates, m.rate);
	if (isfinite(m.deviation))
		printf(", \"deviation\": %.6f", m.deviation);
	printf(", \"index\": [");
	for (size_t i = 0; i < m.nr; i++)
		printf("%s%u", i ? "," : "", m.index[i]);
	printf("], \"weights\": [");
	for (size_t i = 0; i < m.nr; i++)
		printf("%s%.17g", i ? "," : "", m.weight[i]);
	puts("]}");
	return 0;
}

static int tell_place(const struct windows *w, uint32_t counter, struct mp_err *err)
{
	struct mp_edge_place place;
	char text[MP_EDGE_PLACE_TEXT];

	if (!mp_edge_place_of(w->table, counter, &place))
		return mp_err_set(err, EINVAL, "no edge has counter %u", counter);
	mp_edge_place_format(&place, text);
	printf("{\"place\": \"%s\"}\n", text);
	return 0;
}

static int answer_windows(void *arg, char *line, struct mp_err *err)
{
	struct windows *w = arg;

	if (!strcmp(line, "skip"))
		return look(w, 0, true, err);
	if (!strncmp(line, "look ", 5))
		return look(w, atof(line + 5), false, err);
	if (!strncmp(line, "choose ", 7) && w->counting)
		return choose(w, line + 7, err);
	if (!strncmp(line, "place ", 6) && w->table)
		return tell_place(w, (uint32_t)atoi(line + 6), err);
	return mp_err_set(err, EINVAL, "unknown command: %s", line);
}

/* ---- trials ---------------------------------------------------------------------------------- */

static int draw(struct mp_trial *t, struct mp_err *err)
{
	unsigned char byte;
	int order = -EIO;

	if (getrandom(&byte, 1, 0) == 1)
		order = mp_trial_draw(t, byte & 1);
	if (order < 0)
		return mp_err_set(err, -order, "no pair can be drawn: %s", strerror(-order));
	printf("{\"first\": %d}\n", order);
	return 0;
}

static bool read_block(char **words, size_t nr_counters, struct mp_trial_block *out)
{
	char *word = strtok_r(NULL, " ", words);

	*out = (struct mp_trial_block){.cpu_s = word ? atof(word) : -1};
	word = word ? strtok_r(NULL, " ", words) : NULL;
	out->processes = word ? strtoull(word, NULL, 10) : 0;
	for (size_t i = 0; word && i < nr_counters; i++) {
		word = strtok_r(NULL, " ", words);
		out->counts[i] = word ? strtoull(word, NULL, 10) : 0;
	}
	return word;
}

static int add_pair(struct mp_trial *t, char *line, struct mp_err *err)
{
	size_t nr = mp_trial_config(t)->nr_counters;
	struct mp_trial_block blocks[2];
	struct mp_trial_result r;
	char *words;
	int ret;

	strtok_r(line, " ", &words);
	if (!read_block(&words, nr, &blocks[0]) || !read_block(&words, nr, &blocks[1]))
		return mp_err_set(err, EINVAL, "a pair lacks numbers");
	ret = mp_trial_add_pair(t, blocks);
	if (ret)
		return mp_err_set(err, -ret, "the pair: %s", strerror(-ret));
	mp_trial_result(t, &r);
	printf("{\"verdict\": \"%s\", \"pairs\": %u, \"dropped\": %u, \"unlike\": %d",
	       mp_trial_verdict_name(r.verdict), r.nr_pairs, r.nr_dropped, r.unlike);
	if (r.lowest > 0 && isfinite(r.highest))
		printf(", \"speedup\": %.6f, \"lowest\": %.6f, \"highest\": %.6f", r.speedup,
		       r.lowest, r.highest);
	puts("}");
	return 0;
}

static int answer_trial(void *arg, char *line, struct mp_err *err)
{
	if (!strcmp(line, "draw"))
		return draw(arg, err);
	if (!strncmp(line, "pair ", 5))
		return add_pair(arg, line, err);
	return mp_err_set(err, EINVAL, "unknown command: %s", line);
}

/* ---- the dialogue ---------------------------------------------------------------------------- */

/* @cpu_time: NULL: none; else it must be polled each second. */
static int converse(int (*answer)(void *arg, char *line, struct mp_err *err), void *arg,
		    struct md_cpu_time *cpu_time, struct mp_err *err)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	static char line[1 << 14];
	int ret = 0;

	setvbuf(stdin, NULL, _IONBF, 0);
	while (!ret) {
		if (!poll(&input, 1, 1000)) {
			ret = cpu_time ? md_cpu_time_poll(cpu_time) : 0;
			continue;
		}
		if (!fgets(line, sizeof(line), stdin))
			break;
		line[strcspn(line, "\n")] = '\0';
		ret = answer(arg, line, err);
		fflush(stdout);
	}
	return ret;
}

static int windows(int argc, char **argv, struct mp_err *err)
{
	struct windows w = {.dir = argv[3]};
	int ret = open_windows(&w, argv[2], argv[argc - 1 == 4 ? 4 : 2], err);

	if (!ret) {
		puts("{}");
		fflush(stdout);
		ret = converse(answer_windows, &w, w.cpu_time, err);
	}
	close_windows(&w);
	return ret;
}

static int trial(int argc, char **argv, struct mp_err *err)
{
	struct mp_trial_config config = {.alpha = atof(argv[2]),
					 .least_work = atof(argv[3]),
					 .max_pairs = (uint32_t)atoi(argv[4]),
					 .nr_counters = (size_t)argc - 5};
	struct mp_trial *t;
	int ret;

	if (!(config.alpha > 0))
		config.alpha = mp_trial_alpha(1);
	for (size_t i = 0; i < config.nr_counters; i++)
		config.weights[i] = atof(argv[5 + i]);
	ret = mp_trial_new(&config, &t);
	if (ret)
		return mp_err_set(err, -ret, "the trial: %s", strerror(-ret));
	puts("{}");
	fflush(stdout);
	ret = converse(answer_trial, t, NULL, err);
	mp_trial_free(t);
	return ret;
}

int main(int argc, char **argv)
{
	struct mp_err err = {0};
	int ret;

	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "windows"))
		ret = windows(argc, argv, &err);
	else if (argc > 5 && argc <= 5 + MP_TRIAL_NR_COUNTERS && !strcmp(argv[1], "trial"))
		ret = trial(argc, argv, &err);
	else {
		fputs("usage: everyday windows FILE DIR [EXECUTED]\n"
		      "       everyday trial ALPHA LEAST-WORK MAX-PAIRS WEIGHT...\n",
		      stderr);
		return 2;
	}
	return ret ? fail(&err) : EXIT_SUCCESS;
}
