// SPDX-License-Identifier: Apache-2.0
/*
 * sha256 - SHA-256 (FIPS 180-4): for values that nobody may turn back, and for bytes that nobody may exchange.
 */
#ifndef MP_SHA256_H
#define MP_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define MP_SHA256_BYTES 32

void mp_sha256(const void *data, size_t size, uint8_t out[MP_SHA256_BYTES]);
/* The same without the processor's instructions for it: for processors that have none, and for tests. */
void mp_sha256_plain(const void *data, size_t size, uint8_t out[MP_SHA256_BYTES]);

#endif
