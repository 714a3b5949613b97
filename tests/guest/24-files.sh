#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The module's memory of files that were mapped before.
. "$(dirname "$0")/lib.sh"
load
check files
unload
finish
