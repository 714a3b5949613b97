// SPDX-License-Identifier: Apache-2.0
/*
 * verify_symbol_fdes - finds functions without unwind information, whose bounds only a symbol
 * gives.
 */
#ifndef ME_VERIFY_SYMBOL_FDES_H
#define ME_VERIFY_SYMBOL_FDES_H

struct vf_eh;

/* Add an FDE without a program for each function that only a symbol describes. */
int vf_add_symbol_fdes(struct vf_eh *eh);

#endif
