// SPDX-License-Identifier: Apache-2.0
/* defaults - morph-fleet's numbers, with their units and reasons. */
#ifndef MD_FLEET_DEFAULTS_H
#define MD_FLEET_DEFAULTS_H

/* Seconds in which a server that is restarted is there again. The timer's pushes try for two days. */
#define MD_FLEET_GIVE_UP_S 300
/* The first wait between attempts, in seconds. */
#define MD_FLEET_RETRY_S 1
/* KiB of counts in a transaction: the server decodes and checks so much in some 50 ms. */
#define MD_FLEET_BATCH_KIB 48
/* Seconds between two questions of a builder for jobs: a build takes minutes. */
#define MD_FLEET_POLL_S 60

#endif
