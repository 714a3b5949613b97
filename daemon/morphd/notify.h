// SPDX-License-Identifier: Apache-2.0
/* notify - reports morphd's state to systemd, if systemd asked for it. Called by morphd's main. */
#ifndef MD_NOTIFY_H
#define MD_NOTIFY_H

/*
 * @format: one or more assignments of sd_notify(3), one per line, such as "READY=1". A text for
 * STATUS= must not contain a newline. Does nothing without $NOTIFY_SOCKET.
 */
void md_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
