// SPDX-License-Identifier: Apache-2.0
/* signals - SIGTERM and SIGINT end morphd, SIGHUP makes it read its configuration again. */
#ifndef MD_SIGNALS_H
#define MD_SIGNALS_H

#include <signal.h>

/* Set by the handlers; the service resets @md_reload_requested. */
extern volatile sig_atomic_t md_stop_requested, md_reload_requested;

void md_signals_catch(void);

#endif
