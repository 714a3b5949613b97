// SPDX-License-Identifier: Apache-2.0
/*
 * running - versions of a job in processes that run already. Decides, once in a round, whether they go there in place of
 * the file at the path; `morph live' puts them in and takes them back. Where they are, the processes alone tell. The job's
 * directory has a file, `running', with the addresses that the round's versions are written for. Called by the steps.
 *
 * A library's versions go into the processes of one program, if only these have loaded it when the round begins: the
 * kernel's account of CPU time is of programs. The file `running' then names this program, and says which file it was.
 */
#ifndef MD_RUNNING_H
#define MD_RUNNING_H

#include <stdbool.h>

#include "daemon/worker/worker.h"

/*
 * A process that is so old, in seconds, is not about to end. Counting and a trial take at least some minutes, and a
 * program whose processes end sooner is reached by its file.
 */
#define MD_RUNNING_AGE_S 600

/*
 * md_running_begin - decides for this round: the policy permits it, and processes of this age took most of the CPU time of
 * the program's processes. Then there is a place for each version in all of them. Return: 1: versions go into running
 * processes; 0: they do not; 2: there is no place, or several programs have loaded the library, and @result says why;
 * -errno.
 */
int md_running_begin(struct md_task *task, struct md_child_result *result);
/* Was it decided so, in this round? */
bool md_running_is(const struct md_work_dir *dir);
/*
 * The program whose processes' CPU time and crashes count for the job: the file itself, or what has loaded the
 * library.
 */
struct md_running_program {
	char path[PATH_MAX];
};
struct md_running_program md_running_program(const struct md_task *task);
/*
 * Is another file at the program's path than when it was noted, or none? Then processes of both have the library, the time
 * of only one of them is known, and the round has to end. Always false for a job that is no library.
 */
bool md_running_is_replaced(const struct md_task *task);
#define MD_RUNNING_REPLACED "the program that has loaded it was replaced, by an upgrade or by Morph"
/* Looks for other places; versions must then be written again. Return: 0; 1: there are none, @result says why; -errno. */
int md_running_move(struct md_task *task, struct md_child_result *result);

/* The option of morph-optimize for a version; "" if the job's versions do not go into running processes. */
struct md_running_option {
	char text[40];
};
struct md_running_option md_running_option(const struct md_work_dir *dir, enum md_variant variant);

/*
 * md_running_put - puts a version, or the original's code, into all processes that run the original, in place of the version there. Those that have
 * it already keep it. A library's version is refused where the policy forbids it for the program. Return: 0: see @result, whose status is 0 if all have it; -EINTR, -errno.
 */
int md_running_put(struct md_task *task, enum md_variant variant, struct md_child_result *result);
/* Takes every version of the job's file back, in all processes. Return: 0, -errno. */
int md_running_undo(struct md_task *task);
/*
 * md_running_end - the round is over: versions that took turns are taken back, since their counters would go on to take time.
 * Processes with a version that is in use keep it. Return: 0, -errno.
 */
int md_running_end(struct md_task *task);

#endif
