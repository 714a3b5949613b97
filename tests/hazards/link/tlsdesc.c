// SPDX-License-Identifier: Apache-2.0
// Thread-local variables by descriptors: a call through memory that keeps all registers but one.
// flags: -pthread -rdynamic -mtls-dialect=gnu2
// link: -ltls1 -pthread -ldl
// only: gcc
// modes: pie nopie
// library: libtls1.so -DLIBRARY=1
// library: libtls2.so -DLIBRARY=2
#include "tls.c"
