// SPDX-License-Identifier: Apache-2.0
/* runtime - holds the machine code that the Makefile builds from editor/runtime/. */
#include "editor/base/runtime.h"

const uint8_t me_runtime_blob[] __attribute__((aligned(16))) = {
#include "runtime_blob.h"
};

const uint32_t me_runtime_blob_size = sizeof(me_runtime_blob);

_Static_assert(sizeof(me_runtime_blob) % 16 == 0, "the parameters follow directly");
