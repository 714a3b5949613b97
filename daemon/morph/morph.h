// SPDX-License-Identifier: Apache-2.0
/*
 * morph - what the commands of morph share. Each command is one file, morph_<command>.c, and
 * returns an exit status. Options, messages and JSON are those of daemon/stats/stats.h.
 */
#ifndef MD_MORPH_H
#define MD_MORPH_H

#include "daemon/machine/machine.h"
#include "daemon/machine/program.h"
#include "daemon/stats/stats.h"

/* Seconds that estimates of what layouts gain may take together, before something is shown. */
#define MD_MORPH_ESTIMATE_S 5.0

/* The commands. @argv[0] is "morph COMMAND". Return: exit status. */
int md_morph_overview(struct md_stats *stats);
int md_morph_list(struct md_stats *stats, int argc, char **argv);
int md_morph_history(struct md_stats *stats, int argc, char **argv);
int md_morph_explain(struct md_stats *stats, int argc, char **argv);
int md_morph_top(struct md_stats *stats, int argc, char **argv);
int md_morph_watch(struct md_stats *stats, int argc, char **argv);
int md_morph_optimize(struct md_stats *stats, int argc, char **argv);
int md_morph_adopt(struct md_stats *stats, int argc, char **argv);
int md_morph_undo(struct md_stats *stats, int argc, char **argv);
int md_morph_report(struct md_stats *stats, int argc, char **argv);

/* Says how samples are collected. Return: MP_EXIT_NO_PROFILE. */
int md_morph_nothing_collected(void);
/* Opens the database and loads the machine. Return: 0; else the exit status, after a message. */
int md_morph_load(struct md_stats *stats, int64_t since_s, struct mp_store **store,
		  struct md_machine *machine);
/*
 * md_morph_find - the program that the user means. Return: 0; else the exit status, after a
 * message. Ownership: md_program_fini(@out).
 */
int md_morph_find(const struct md_machine *machine, const char *name, struct md_program *out);
/* The entry of @program: by its path, or by its identity. NULL: none. */
struct md_machine_program *md_morph_entry(struct md_machine *machine,
					  const struct md_program *program);

/* An object with what is known of @program. */
json_t *md_morph_program_json(const struct md_machine_program *program);
/* The gain as {ratio, lowest, highest}; null: not measured. */
json_t *md_morph_gain_json(const struct mp_job_gain *gain);

/* The option --since, which md_stats_since() reads. */
#define MD_MORPH_SINCE_OPTION                                                                      \
	{                                                                                          \
		"since", 's', "WHEN", 0,                                                           \
			"Leave out older samples: 2h, 3d, today, 2026-11-20, ...", 0               \
	}

/* Columns of the terminal, or 80; between 60 and 200. */
size_t md_morph_columns(void);

#endif
