// SPDX-License-Identifier: Apache-2.0
// Landing pads in the large code model: pointers of 8 bytes in the tables.
// flags: -pthread -mcmodel=large
// link: -pthread
// modes: pie nopie
#include "pads.cc"
