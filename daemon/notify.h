// SPDX-License-Identifier: Apache-2.0
/* notify - tells systemd how morphd is doing, where systemd asked for it. */
#ifndef MD_NOTIFY_H
#define MD_NOTIFY_H

/*
 * @format: one or more of sd_notify(3)'s assignments, a line each: "READY=1". What a text for
 * STATUS= brings along may hold no end of line. Nothing happens without $NOTIFY_SOCKET.
 */
void md_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
