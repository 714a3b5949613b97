// SPDX-License-Identifier: Apache-2.0
// A handler of faults that knows single places, by distances of 8 bytes from the GOT or by addresses of 8 bytes: code for any
// distance.
// flags: -mcmodel=medium -mlarge-data-threshold=1
// only: gcc
// stays: peek fetch
// moves: main
#include "one_place.c"
