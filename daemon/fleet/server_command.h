// SPDX-License-Identifier: Apache-2.0
/*
 * server_command - the commands of morph-fleet for operators of the server. Each parses its options,
 * prints, and returns the exit status. Called by main().
 */
#ifndef MD_FLEET_SERVER_COMMAND_H
#define MD_FLEET_SERVER_COMMAND_H

/* @argv[0] is "morph-fleet COMMAND". */
int md_fleet_command_init(int argc, char **argv);
int md_fleet_command_upgrade(int argc, char **argv);
int md_fleet_command_check(int argc, char **argv);
int md_fleet_command_enrol(int argc, char **argv);
int md_fleet_command_ban(int argc, char **argv);
int md_fleet_command_unban(int argc, char **argv);
int md_fleet_command_forget(int argc, char **argv);

#endif
