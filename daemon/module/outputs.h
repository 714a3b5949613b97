// SPDX-License-Identifier: Apache-2.0
/*
 * outputs - decides whether a module's map note is believed: the module is in the store's list
 * of outputs, or its original is found here and verify agrees. Called by pipeline and by
 * import.
 *
 *	mapped --> list? --yes--------------------------> believed
 *		     \--no--> original here? --verify--> believed, and in the list
 *						    \--> refused
 *
 * Another process verifies (confirm), one file at a time, while sampling goes on.
 */
#ifndef MD_OUTPUTS_H
#define MD_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/module/modcache.h"
#include "libprof/store/store.h"
#include "libprof/store/store_outputs.h"

/* Samples of a file wait this long for the answer; then they count for the file itself. */
#define MD_OUTPUTS_WAIT_MS 30000

struct md_outputs;

/* *@store has the list. It may be NULL and may change later. */
struct md_outputs *md_outputs_new(struct mp_store *const *store);
void md_outputs_free(struct md_outputs *outputs);

/*
 * Handles a module that was mapped. If its map is undecided, looks into the list, then starts
 * to verify.
 */
void md_outputs_check_module(struct md_outputs *outputs, struct md_module *module);
/*
 * md_outputs_next_decision - wait at most @timeout_ms for a decision. Return: the module of @mc that was
 * decided; NULL: none. Call it until it returns NULL.
 */
struct md_module *md_outputs_next_decision(struct md_outputs *outputs, struct md_modcache *mc,
					   int timeout_ms);
/* Return: how long samples must still wait for answers, in ms; 0: no longer. */
int md_outputs_wait_ms(const struct md_outputs *outputs);
/* Decides on modules from a recording by the list alone, since their files are not here. */
void md_outputs_check_list(struct md_outputs *outputs, struct md_modcache *mc);
/* Stores the confirmed outputs. A failure is harmless: they are confirmed again later. */
void md_outputs_save(struct md_outputs *outputs);

/*
 * md_outputs_confirm - confirm one file, waiting for the answer. @fd: the file at @path, which
 * claims to be the output @output.
 */
bool md_outputs_confirm(struct mp_store *store, int fd, const char *path,
			const struct mp_output *output);

#endif
