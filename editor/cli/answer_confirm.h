// SPDX-License-Identifier: Apache-2.0
/*
 * answer_confirm - morphd starts morph-optimize under another name to ask whether a file is an
 * output of Morph. Called first in main().
 */
#ifndef ME_ANSWER_CONFIRM_H
#define ME_ANSWER_CONFIRM_H

/* me_confirm_main - if the process was started for this question: answer and exit. Else return. */
void me_confirm_main(char **argv);

#endif
