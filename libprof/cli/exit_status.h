// SPDX-License-Identifier: Apache-2.0
/*
 * exit_status - how programs end. Every program has these, and the programs that run others read them.
 * Documentation/architecture.md has the same table, and the manual page of each program those that it
 * ends with; scripts/check/manpages compares.
 */
#ifndef MP_EXIT_STATUS_H
#define MP_EXIT_STATUS_H

enum mp_exit {
	MP_EXIT_DONE = 0,
	MP_EXIT_FAILED = 1,
	MP_EXIT_USAGE = 2,
	MP_EXIT_NO_PROFILE = 3, /* none, or too little */
	MP_EXIT_REFUSED = 4,	/* as unsafe */
	/* Verdicts of audits. */
	MP_EXIT_NOT_FASTER = 5,
	MP_EXIT_DIFFERS = 6, /* the output */
	MP_EXIT_UNDECIDED = 7,
	MP_EXIT_LATER = 75, /* a server is gone, or takes no more today: try again later */
	/* Of morphd run, and in processes that should have become a command; as in shells. */
	MP_EXIT_NOT_EXECUTABLE = 126,
	MP_EXIT_NOT_FOUND = 127,
};

#endif
