// SPDX-License-Identifier: Apache-2.0
/*
 * machine_id - tells this machine from others, without its id: a hash of /etc/machine-id under a name of
 * Morph's own, as machine-id(5) asks for. Called by the store when it is made, and by morph-fleet push.
 */
#ifndef MP_MACHINE_ID_H
#define MP_MACHINE_ID_H

#include <stdint.h>

#define MP_MACHINE_BYTES 16

/*
 * @path: the file with the id; NULL: /etc/machine-id. Return: 0; -errno: it cannot be read, and @out is
 * zeros, which stand for a machine without an id.
 */
int mp_machine_id_read(const char *path, uint8_t out[MP_MACHINE_BYTES]);

#endif
