#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parts of the rings that can be mapped and parts that cannot, at the default and the least size.
. "$(dirname "$0")/lib.sh"
load
check maps
unload
load ring_kib=16
check maps
unload
finish
