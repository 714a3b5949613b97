// SPDX-License-Identifier: Apache-2.0
/*
 * canary_command - the commands about roll-outs: "canary" shows and steers them, "renew" looks after a
 * host's builds, "report" writes a page. @argv[0] is "morph-fleet COMMAND". Return: exit status.
 */
#ifndef MD_FLEET_CANARY_COMMAND_H
#define MD_FLEET_CANARY_COMMAND_H

int md_fleet_command_canary(int argc, char **argv);
int md_fleet_command_renew(int argc, char **argv);
int md_fleet_command_report(int argc, char **argv);

#endif
