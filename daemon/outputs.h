// SPDX-License-Identifier: Apache-2.0
/*
 * outputs - decides whether a module's map note is believed: the module is in the store's list of
 * outputs, or its original is found here and verify says yes. Called by pipeline and by import.
 *
 *	mapped --> list? --yes--------------------------> believed
 *		     \--no--> original here? --verify--> believed, and in the list
 *						    \--> refused
 *
 * Verification takes place in another process (confirm), one at a time, while samples are collected.
 */
#ifndef MD_OUTPUTS_H
#define MD_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/modcache.h"
#include "libprof/store.h"
#include "libprof/store_outputs.h"

/* Samples of a file wait for an answer this long, and no longer: then they count for the file. */
#define MD_OUTPUTS_WAIT_MS 30000

struct md_outputs;

/* *@store: with the list; may be NULL, and another one later. */
struct md_outputs *md_outputs_new(struct mp_store *const *store);
void md_outputs_free(struct md_outputs *outputs);

/* A module was met: where its map is not decided yet, the list is asked, then verify. */
void md_outputs_consider(struct md_outputs *outputs, struct md_module *module);
/*
 * md_outputs_take - what became of a module, waiting at most @timeout_ms. Return: the module of @mc
 * that was just decided; NULL: none. To be called until NULL.
 */
struct md_module *md_outputs_take(struct md_outputs *outputs, struct md_modcache *mc,
				  int timeout_ms);
/* How long, in ms, samples are still to wait for answers; 0: not any more. */
int md_outputs_wait_ms(const struct md_outputs *outputs);
/* Modules that came in a recording have no file here: the list alone can say something. */
void md_outputs_consult(struct md_outputs *outputs, struct md_modcache *mc);
/* Write down what was confirmed. Failures are no harm: it is confirmed again another time. */
void md_outputs_save(struct md_outputs *outputs);

/*
 * md_outputs_confirm - the same of one file at once, for who has time: @fd is the output @output
 * claims to be, at @path.
 */
bool md_outputs_confirm(struct mp_store *store, int fd, const char *path,
			const struct mp_output *output);

#endif
