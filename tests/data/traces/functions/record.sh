#!/bin/sh
# Builds executor.cpp in /tmp/perflab_functions and records its functions (LTTng-UST) and the scheduler (perf), as root:
#
#   unshare --uts sh record.sh
#
# The host gets a neutral name, in a name space of its own. Wanted: g++, lttng-tools, liblttng-ust-dev, perf.
set -eu
here=$(dirname "$(readlink -f "$0")")
hostname robot
mkdir -p /tmp/perflab_functions/home
cp "$here/executor.cpp" /tmp/perflab_functions
cd /tmp/perflab_functions
export LTTNG_HOME=/tmp/perflab_functions/home

g++ -std=c++17 -O1 -finstrument-functions -finstrument-functions-exclude-file-list=/usr/include,/usr/lib \
  -Wl,--build-id executor.cpp -o functions

lttng-sessiond --no-kernel >sessiond.log 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon || true' EXIT
until lttng --no-sessiond list >/dev/null 2>&1; do kill -0 $daemon; sleep 0.1; done

lttng --no-sessiond create functions --output=/tmp/perflab_functions/trace
lttng --no-sessiond enable-channel --userspace --subbuf-size=64k --num-subbuf=4 calls
lttng --no-sessiond enable-event --userspace --channel=calls 'lttng_ust_cyg_profile*'
lttng --no-sessiond enable-event --userspace --channel=calls 'lttng_ust_statedump*'
lttng --no-sessiond add-context --userspace --channel=calls --type=vpid --type=vtid --type=procname
lttng --no-sessiond start
perf record --quiet -a -k CLOCK_MONOTONIC -e sched:sched_switch -e sched:sched_wakeup -o perf.data \
  env LD_PRELOAD=liblttng-ust-cyg-profile.so ./functions
lttng --no-sessiond stop
lttng --no-sessiond destroy
perf data convert --to-ctf trace/scheduler -i perf.data
