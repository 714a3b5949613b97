// SPDX-License-Identifier: Apache-2.0
/* build_command - the commands of morph-fleet about builds; as in client_command.h. */
#ifndef MD_FLEET_BUILD_COMMAND_H
#define MD_FLEET_BUILD_COMMAND_H

/* @argv[0] is "morph-fleet COMMAND". Return: exit status. */
int md_fleet_command_build(int argc, char **argv);
int md_fleet_command_request(int argc, char **argv);
int md_fleet_command_builds(int argc, char **argv);
int md_fleet_command_install(int argc, char **argv);

/* The version of this program, as fleet.build has it. */
const char *md_fleet_version(void);

#endif
