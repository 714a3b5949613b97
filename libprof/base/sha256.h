// SPDX-License-Identifier: Apache-2.0
/* sha256 - SHA-256 of a few bytes (FIPS 180-4). For values that nobody may turn back. */
#ifndef MP_SHA256_H
#define MP_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define MP_SHA256_BYTES 32

void mp_sha256(const void *data, size_t size, uint8_t out[MP_SHA256_BYTES]);

#endif
