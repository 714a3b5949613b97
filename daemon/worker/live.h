// SPDX-License-Identifier: Apache-2.0
/*
 * live - what the worker remembers, while it runs, of a job whose versions are put in place in turns (the states
 * counting and trying): which version lies there, when, and what its processes did. Lost if the worker ends;
 * a step then begins its measurement anew. Called by step_count and step_trial.
 *
 * Versions take turns at the file's path, or in running processes (running.h); then the original is at the path, and
 * all processes execute it, whichever version's code they have.
 */
#ifndef MD_LIVE_H
#define MD_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/everyday/cpu_time.h"
#include "daemon/worker/variants.h"
#include "daemon/everyday/windows.h"
#include "daemon/worker/worker.h"

/*
 * CPU time and number of the processes of one version. Whenever morph-optimize puts it in place, it is a new file; processes
 * of all these files count.
 */
struct md_done {
	double run_s;		     /* CPU time */
	double user_s, system_s;     /* the same by timer ticks, which are coarse */
	uint64_t processes, crashes; /* that have ended */
	uint64_t running;
	bool incomplete; /* some processes were missed since the last look */
};

struct md_counting;
struct md_trying;

struct md_live {
	struct md_live *next;
	char *path;
	char *program; /* whose processes' CPU time counts: the same path, or what has loaded the library */
	uint32_t round;
	enum mp_job_state state;
	enum md_variant there;
	bool running;	  /* versions are put into running processes */
	struct stat file; /* as it was put there; while running, the original */
	bool proved;	  /* by hash, its bytes are those of @there */
	struct md_spare {
		struct stat file; /* st_ino 0: there is none */
		enum md_variant variant;
	} spare; /* the version that was replaced last, see spare.c */
	struct md_watch {
		enum md_variant variant;
		int index; /* md_cpu_time_watch() */
		/*
		 * A file's number may be used again once nobody executes the file. The processes until @before
		 * executed another file, and so do those after @after, once it is @over.
		 */
		struct md_cpu_sum before, after;
		bool over;
	} * watches;
	size_t nr_watches;
	struct md_counting *counting; /* of step_count */
	struct md_windows windows;
	bool busy;		  /* one of its steps waits for a child */
	bool waited;		  /* for another job: what was watched meanwhile is that job's */
	char *told;		  /* what was said of its failing steps; NULL: nothing */
	unsigned int failures;	  /* in a row, of putting a version into running processes */
	double failed_s;	  /* mp_now_s() of the last one */
	struct md_trying *trying; /* of step_trial */
	void (*forget)(struct md_live *live); /* frees the two; NULL: there is nothing */
};

/*
 * md_live_of - what is remembered of the task's job in its present state and round; made anew if there is nothing.
 * What was remembered of another state or round is forgotten, unless one of its steps waits for a child. Return: 0, -ENOTSUP: this machine cannot tell
 * what processes take, and the message says why; -errno.
 */
int md_live_of(struct md_task *task, struct md_live **out);
/* Return: the file at the path is as the worker put it there; *@there: which version. */
bool md_live_knows(const struct md_task *task, enum md_variant *there);
/*
 * md_live_put - puts @variant in the file's place by one rename. Return: 0; 1: it was refused, and @reason of
 * @result says why; -ESTALE: the job is not in the task's state any more, and the version may be in place; -EINTR; -errno.
 */
int md_live_put(struct md_task *task, struct md_live *live, enum md_variant variant,
		struct md_child_result *result);
/* The same with the original; that it could not be put back is an error. Return: 0, -errno. */
int md_live_put_back(struct md_task *task, struct md_live *live);
/*
 * md_live_leave - the worker ends, or a step failed: puts the original back by its name alone, if it lies beside the path.
 * Else what lies there is removed, since a copy of the original may need the room. Return: the original is in its place.
 */
bool md_live_leave(struct md_task *task);
/*
 * md_live_check - if the file is not as the worker put it there, or if it has put nothing there yet, the original gets
 * back in its place. Return: 0: it is as it was; 1: the original is there; -errno.
 */
int md_live_check(struct md_task *task, struct md_live *live);
/* Does a process of any of its versions run behind a filter of system calls? See md_cpu_time_is_filtered(). */
#define MD_LIVE_FILTERED                                                                           \
	"its processes run behind a filter of system calls, which might end a version that counts"
bool md_live_is_filtered(const struct md_worker *worker, const struct md_live *live);
/*
 * md_live_waits - do versions of another job take turns in processes of the same program, which began earlier? Crashes and
 * CPU time are those of the program, so the harm of one version would become the other's verdict.
 */
bool md_live_waits(const struct md_live *live);
/* Tells users so. Return: 0, -errno. */
int md_live_wait(struct md_task *task, struct md_live *live);
/* So often putting a version into running processes may fail before versions are written for other places, and before the end. */
#define MD_LIVE_MOVE 3
#define MD_LIVE_END  6
/* Seconds between a failure and the next try. */
#define MD_LIVE_PAUSE_S 15.0
/*
 * md_live_failed - md_live_put() was refused while running: takes back what was put into some of the processes. Return: how
 * often it was refused since a block or window was complete; -errno.
 */
int md_live_failed(struct md_task *task, struct md_live *live);
/*
 * May a version be put into running processes now? Not while none runs, nor soon after a failure: a service that starts
 * again needs some seconds. Return: 1, 0, -errno.
 */
int md_live_may_put(struct md_task *task, const struct md_live *live);
/* What @variant did until now. Return: 0, -errno. */
int md_live_done(struct md_worker *worker, const struct md_live *live, enum md_variant variant,
		 struct md_done *out);
/* How many processes of @variant crashed until now; cheaper than md_live_done(). Return: 0, -errno. */
int md_live_crashes(struct md_worker *worker, const struct md_live *live, enum md_variant variant,
		    uint64_t *crashes);
/* Forgets jobs that are not among @jobs in the state and the round that they had. */
void md_live_keep(struct md_worker *worker, const struct mp_job *jobs, size_t nr);
/* Forgets the job of this path, if none of its steps waits for a child. */
void md_live_drop(struct md_worker *worker, const char *path);
/* Is the job of this path live? */
bool md_live_has(const struct md_worker *worker, const char *path);
/*
 * md_live_is_news - the steps of the job of this path fail, with this text; "": they do not. A step is tried each
 * second, and users want to read of it once. Return: nobody was told yet.
 */
bool md_live_is_news(struct md_worker *worker, const char *path, const char *text);
/* Is a job live? Then the worker stays and looks each second. */
bool md_live_any(const struct md_worker *worker);
/* Forgets everything; files stay as they are. */
void md_live_fini(struct md_worker *worker);

/* ---- the version that was replaced last (spare.c) ----------------------------------------------- */

/* Gives the file at the path a second name before a version replaces it. Return: it has it. */
bool md_spare_keep(struct md_live *live);
/* Now it is replaced: it is the spare one, if its bytes are those of the version that was there. */
void md_spare_take(struct md_task *task, struct md_live *live);
/*
 * md_spare_swap - puts the spare version at the path, if it is @variant, and if both files are as they were. What was there is the
 * spare one then. Return: it is in place.
 */
bool md_spare_swap(struct md_task *task, struct md_live *live, enum md_variant variant);
/* Forgets the spare version, and removes it. */
void md_spare_drop(struct md_live *live);
/* Removes what a worker left beside @path that was killed. */
void md_spare_remove(const char *path);

#endif
