// SPDX-License-Identifier: Apache-2.0
/*
 * morph_top - the command "top": what takes the machine's time now. On a terminal it draws again
 * as the database grows, with ncurses; elsewhere it prints one table.
 */
#include <curses.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/collector.h"
#include "daemon/morph/morph.h"
#include "daemon/morph/wording.h"

#define MP_OPTIONS struct top

/* Limit on rows; more than any terminal shows. */
#define MAX_ROWS 200

struct row {
	char *path;
	char state[32];
	uint64_t nr, before; /* samples now, and when the last change was seen */
	double now, all;     /* percent of the machine since then, and of all samples */
};

struct top {
	struct md_cli *cli;
	bool once;
	double delay_s;
	struct row rows[MAX_ROWS];
	size_t nr_rows;
	uint64_t nr, before;
	char heading[256];
};

static const struct mp_option options[] = {
	MP_NUMBER("delay", 'w', delay_s, 0.1, 3600, "SECONDS",
		  "Read the database again after so many seconds (2)"),
	MP_FLAG("once", once, "Print one table, also on a terminal"), MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "Show what takes this machine's time, and again as samples arrive.\v"
	       "Keys: q ends. Without a terminal: one table.",
	.shared = &md_cli_common_argp};

/* ---- rows -------------------------------------------------------------------------------------- */

static void rows_fini(struct row *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(rows[i].path);
}

static const struct row *find(const struct row *rows, size_t nr, const char *path)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(rows[i].path, path))
			return &rows[i];
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->now < y->now || x->now > y->now)
		return x->now < y->now ? 1 : -1;
	if (x->nr != y->nr)
		return x->nr < y->nr ? 1 : -1;
	return strcmp(x->path, y->path);
}

static void fill(struct top *t, const struct md_machine *m)
{
	struct row old[MAX_ROWS];
	size_t nr_old = t->nr_rows;
	bool grew = m->nr_samples != t->nr;

	memcpy(old, t->rows, nr_old * sizeof(*old));
	if (grew)
		t->before = t->nr;
	t->nr = m->nr_samples;
	t->nr_rows = 0;
	for (size_t i = 0; i < m->nr_programs && t->nr_rows < MAX_ROWS; i++) {
		const struct md_machine_program *p = &m->programs[i];
		const struct row *was = find(old, nr_old, p->path);
		struct row *row = &t->rows[t->nr_rows];
		uint64_t more;

		*row = (struct row){.path = strdup(p->path), .nr = p->nr_samples};
		if (!row->path)
			break;
		row->before = grew ? (was ? was->nr : 0) : (was ? was->before : 0);
		more = row->nr >= row->before ? row->nr - row->before : 0;
		row->now = t->nr > t->before ? 100 * (double)more / (double)(t->nr - t->before) : 0;
		row->all = 100 * p->share;
		snprintf(row->state, sizeof(row->state), "%s", md_wording_state(p));
		t->nr_rows++;
	}
	rows_fini(old, nr_old);
	if (t->nr_rows)
		qsort(t->rows, t->nr_rows, sizeof(*t->rows), compare);
}

static int load(struct top *t)
{
	struct md_collector collector;
	struct md_machine machine;
	struct mp_store *store;
	char when[MD_WORDING_MAX];
	int r = md_morph_load(t->cli, 0, &store, &machine);

	if (r)
		return r;
	fill(t, &machine);
	md_collector_look(t->cli->path, &collector);
	snprintf(t->heading, sizeof(t->heading), "%s %s; %" PRIu64 " samples",
		 collector.runs ? "Morph is collecting since" : "Morph is not collecting",
		 collector.runs ? md_wording_time(collector.since_s, when) : "now", t->nr);
	md_machine_fini(&machine);
	mp_store_close(store);
	return 0;
}

/* ---- one table --------------------------------------------------------------------------------- */

static int print_table(const struct top *t)
{
	size_t width = md_morph_columns() - 47;

	printf("%s\n%12s %8s  %-*s  %s\n", t->heading, "Samples", "Machine", (int)width, "Program",
	       "State");
	for (size_t i = 0; i < t->nr_rows; i++) {
		printf("%12" PRIu64 " %6.2f %%  ", t->rows[i].nr, t->rows[i].all);
		md_wording_put_path(stdout, t->rows[i].path, width);
		printf("  %s\n", t->rows[i].state);
	}
	return md_cli_finish(MP_EXIT_DONE);
}

static int print_json(const struct top *t)
{
	json_t *root = md_cli_json_new("top"), *rows = json_array();

	for (size_t i = 0; i < t->nr_rows; i++)
		json_array_append_new(rows, json_pack("{s:o, s:I, s:f}", "path",
						      mp_json_string(t->rows[i].path), "samples",
						      (json_int_t)t->rows[i].nr, "percent",
						      t->rows[i].all));
	json_object_set_new(root, "samples", json_integer((json_int_t)t->nr));
	json_object_set_new(root, "programs", rows);
	return md_cli_json_print(root);
}

/* ---- live -------------------------------------------------------------------------------------- */

static void draw(const struct top *t)
{
	size_t width = COLS > 60 ? (size_t)COLS - 45 : 15;
	char *line;
	size_t size;
	FILE *out;

	erase();
	mvaddnstr(0, 0, t->heading, COLS - 1);
	attron(A_REVERSE);
	mvprintw(1, 0, "%8s %8s  %-*s  %-22s", "Now", "Machine", (int)width, "Program", "State");
	attroff(A_REVERSE);
	for (size_t i = 0; i < t->nr_rows && (int)i + 3 < LINES; i++) {
		const struct row *row = &t->rows[i];

		line = NULL;
		out = open_memstream(&line, &size);
		if (!out)
			break;
		fprintf(out, "%6.1f %% %6.2f %%  ", row->now, row->all);
		md_wording_put_path(out, row->path, width);
		fprintf(out, "  %s", row->state);
		if (!fclose(out))
			mvaddnstr((int)i + 2, 0, line, COLS - 1);
		free(line);
	}
	mvaddnstr(LINES - 1, 0,
		  "q: end.  Now: since the database last grew, which it does every ten seconds.",
		  COLS - 1);
	refresh();
}

static int show(struct top *t)
{
	struct timespec end, now;
	int r = 0, key;
	FILE *screen;

	/* Curses escapes what it is given, and needs a stream with a descriptor. */
	screen = fdopen(dup(STDOUT_FILENO), "w");
	if (!screen || !newterm(NULL, screen, stdin)) {
		if (screen)
			fclose(screen);
		return print_table(t);
	}
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	do {
		draw(t);
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_sec += (time_t)t->delay_s;
		timeout((int)(t->delay_s * 1000));
		key = getch();
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (key != 'q' && key != 'Q' && key != 27)
			r = load(t);
		/* The terminal is gone: every read fails at once. */
		if (key == ERR && t->delay_s >= 1 && now.tv_sec + 1 < end.tv_sec)
			break;
	} while (!r && key != 'q' && key != 'Q' && key != 27);
	endwin();
	fclose(screen);
	return r ? r : MP_EXIT_DONE;
}

int md_morph_top(struct md_cli *cli, int argc, char **argv)
{
	struct top t = {.cli = cli, .delay_s = MD_MORPH_DELAY_S};
	int r;

	md_cli_parse(&usage, argc, argv, &t, cli);
	r = load(&t);
	if (!r && !t.nr_rows)
		r = (md_cli_note("%s: holds no samples", cli->path), md_morph_nothing_collected());
	else if (!r && cli->json)
		r = print_json(&t);
	else if (!r && (t.once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)))
		r = print_table(&t);
	else if (!r)
		r = show(&t);
	rows_fini(t.rows, t.nr_rows);
	return r;
}
