// SPDX-License-Identifier: Apache-2.0
/*
 * sanitized - tells whether this build has the address sanitizer, which needs more memory
 * and system calls.
 */
#ifndef MP_SANITIZED_H
#define MP_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define MP_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MP_IS_SANITIZED 1
#endif
#endif
#ifndef MP_IS_SANITIZED
#define MP_IS_SANITIZED 0
#endif

#endif
