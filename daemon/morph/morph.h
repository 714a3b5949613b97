// SPDX-License-Identifier: Apache-2.0
/*
 * morph - what the commands of morph share. Each command is one file, morph_<command>.c, and
 * returns an exit status. Options, messages and JSON are those of daemon/cli/cli.h.
 */
#ifndef MD_MORPH_H
#define MD_MORPH_H

#include "daemon/machine/machine.h"
#include "daemon/machine/program.h"
#include "daemon/stats/defaults.h"
#include "daemon/cli/cli.h"

/* The commands. @argv[0] is "morph COMMAND". Return: exit status. */
int md_morph_overview(struct md_cli *cli);
int md_morph_list(struct md_cli *cli, int argc, char **argv);
int md_morph_history(struct md_cli *cli, int argc, char **argv);
int md_morph_explain(struct md_cli *cli, int argc, char **argv);
int md_morph_top(struct md_cli *cli, int argc, char **argv);
int md_morph_watch(struct md_cli *cli, int argc, char **argv);
int md_morph_optimize(struct md_cli *cli, int argc, char **argv);
int md_morph_adopt(struct md_cli *cli, int argc, char **argv);
int md_morph_undo(struct md_cli *cli, int argc, char **argv);
int md_morph_report(struct md_cli *cli, int argc, char **argv);
int md_morph_on(struct md_cli *cli, int argc, char **argv);
int md_morph_off(struct md_cli *cli, int argc, char **argv);
int md_morph_live(struct md_cli *cli, int argc, char **argv);

/* @buf gets the policy's directory: the one that an option @named, or NULL. Return: 0, or an exit status after a message. */
int md_morph_policy_dir(const char *named, char *buf, size_t size);
/* As `morph undo --all'. @rows: a list that gets an entry for each program; NULL: prints text. Return: exit status. */
int md_morph_undo_all(struct md_cli *cli, json_t *rows);
/* The database if there is one; it only helps. Return: false: there is none, and @machine is empty. */
bool md_morph_load_quietly(struct md_cli *cli, struct md_machine *machine);

/* Says how samples are collected. Return: MP_EXIT_NO_PROFILE. */
int md_morph_nothing_collected(void);
/* Opens the database and loads the machine. Return: 0; else the exit status, after a message. */
int md_morph_load(struct md_cli *cli, int64_t since_s, struct mp_store **store,
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

/* Columns of the terminal, or 80; between 60 and 200. */
size_t md_morph_columns(void);

#endif
