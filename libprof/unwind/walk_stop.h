// SPDX-License-Identifier: Apache-2.0
/* walk_stop - why walks end. The store counts them, and knows nothing else of walks. */
#ifndef MP_WALK_STOP_H
#define MP_WALK_STOP_H

/* Why a walk ended. */
enum mp_walk_stop {
	MP_WALK_UNSAID,	  /* only in records: nothing is known */
	MP_WALK_BOTTOM,	  /* the stack is complete */
	MP_WALK_DEPTH,	  /* more frames than there is room for */
	MP_WALK_COPY,	  /* a word that the caller does not have */
	MP_WALK_UNMAPPED, /* an address in no known mapping, or in a file that cannot be read */
	MP_WALK_NO_ROWS,  /* code without rows, and no plausible frame pointer */
	MP_WALK_NO_ROW,	  /* a gap between the rows of a module */
	MP_WALK_RULE,	  /* a rule that is not computed */
	MP_WALK_REGISTER, /* a rule needs a caller's register that is not known */
	MP_WALK_ORDER,	  /* the stack pointer moved back a second time */
	MP_NR_WALK_STOP,
};

/* Return: a word for the ledger, such as "bottom". */
const char *mp_walk_stop_name(enum mp_walk_stop stop);

#endif
