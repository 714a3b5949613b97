// SPDX-License-Identifier: Apache-2.0
/* notify - tells systemd that morphd is ready or stopping, where systemd asked for it. */
#ifndef MD_NOTIFY_H
#define MD_NOTIFY_H

/* @state: "READY=1", "STOPPING=1". Nothing happens without $NOTIFY_SOCKET. */
void md_notify(const char *state);

#endif
