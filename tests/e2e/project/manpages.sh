#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# parts: the pages describe all programs
# The manual pages describe the options that --help prints, and no others. There are few of them.
set -u
root=$(cd "$(dirname "$0")/../../.." && pwd)
"$root/scripts/check/manpages" && "$root/scripts/report/options"
