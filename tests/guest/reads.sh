#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# read() into buffers of any size, poll() with a watermark.
. "$(dirname "$0")/lib.sh"
load
check reads
unload
finish
