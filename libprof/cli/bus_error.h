// SPDX-License-Identifier: Apache-2.0
/*
 * bus_error - a mapped file became shorter, or its disk failed, while it was read: SIGBUS is the only
 * sign of that. Called by main() of programs that map files.
 */
#ifndef MP_BUS_ERROR_H
#define MP_BUS_ERROR_H

/*
 * From now on SIGBUS calls @clean, which removes what is half written (NULL: nothing is), prints one
 * line that begins with @program, and ends the process with status 1. @clean is called in a signal
 * handler. Programs that this process executes get the default action.
 */
void mp_bus_error_catch(const char *program, void (*clean)(void));

#endif
