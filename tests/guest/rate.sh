#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# icount
# long
# timeout: 10000000
# A busy CPU gives as many samples as requested. Only a machine whose clock counts its own
# instructions can test this, because any other is sometimes late. Such a clock leaps while the
# machine waits for a file, so the time limit means nothing here.
. "$(dirname "$0")/lib.sh"
load
check rings rate 100 hrtimer 400
check rings rate 1024 hrtimer 300
check rings rate 8000 hrtimer 100
check rings rate 0 tick 400
unload
load jitter=0
check rings rate 1024 hrtimer 300
unload
finish
