// SPDX-License-Identifier: Apache-2.0
/*
 * confirm - morph-optimize as the process that a collector starts to learn whether a file is an
 * output of Morph. Called first in main().
 */
#ifndef ME_CONFIRM_H
#define ME_CONFIRM_H

/* me_confirm_main - answers and exits where this process was started for that; else returns. */
void me_confirm_main(char **argv);

#endif
