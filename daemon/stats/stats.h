// SPDX-License-Identifier: Apache-2.0
/*
 * stats - the commands of morph-stats. Each is one file (stats_<command>.c) and returns an exit status.
 */
#ifndef MD_STATS_H
#define MD_STATS_H

#include "daemon/cli/cli.h"

/* The commands. @argv[0] is "morph-stats COMMAND". Return: exit status. */
int md_stats_status(struct md_cli *cli, int argc, char **argv);
int md_stats_query(struct md_cli *cli, int argc, char **argv);
int md_stats_call_graph(struct md_cli *cli, int argc, char **argv);
int md_stats_activity(struct md_cli *cli, int argc, char **argv);
int md_stats_import(struct md_cli *cli, int argc, char **argv);
int md_stats_export(struct md_cli *cli, int argc, char **argv);
int md_stats_diff(struct md_cli *cli, int argc, char **argv);
int md_stats_merge(struct md_cli *cli, int argc, char **argv);
int md_stats_remember(struct md_cli *cli, int argc, char **argv);
int md_stats_trials(struct md_cli *cli, int argc, char **argv);
int md_stats_annotate(struct md_cli *cli, int argc, char **argv);
int md_stats_heat(struct md_cli *cli, int argc, char **argv);
int md_stats_flame(struct md_cli *cli, int argc, char **argv);
int md_stats_audit(struct md_cli *cli, int argc, char **argv);

#endif
