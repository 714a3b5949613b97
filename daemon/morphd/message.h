// SPDX-License-Identifier: Apache-2.0
/* message - morphd's messages on standard error. */
#ifndef MD_MESSAGE_H
#define MD_MESSAGE_H

void md_message(const char *message);
/* As md_message(), for the pipeline's callbacks. */
void md_message_warn(void *arg, const char *message);

#endif
