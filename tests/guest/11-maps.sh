#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What of the rings can be mapped, and what cannot, at the default size and at the least.
. "$(dirname "$0")/lib.sh"
load
check maps
unload
load ring_kib=16
check maps
unload
finish
