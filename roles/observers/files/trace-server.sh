#!/bin/sh
# Traces the kernel of the server under load with bpftrace, and counts instructions with perf. Runs detached on the
# server, as its own service, as root.
#
# Environment: DIR (directory for the files), AFTER (seconds to wait first), SECONDS_LONG (duration in whole
# seconds), UNITS (name=unit of the stack, separated by spaces; a unit may be a pattern).
#
# Writes trace.jsonl: a line {"type": "group", "data": {<number>: <control group>}} for each control group of the
# stack, and what bpftrace prints of trace.bt; perf.csv, one line per counter, which begins with its value; and
# trace.log, the messages of both.
set -u
mkdir -p "$DIR" && cd "$DIR" || exit 1
exec >trace.jsonl 2>trace.log
sleep "$AFTER"

# The number of a control group is that of its folder in the version 2 tree.
tree=/sys/fs/cgroup
[ ! -e $tree/unified/cgroup.procs ] || tree=$tree/unified
set -f
set -- -false
for unit in $UNITS; do set -- "$@" -o -path "*/${unit#*=}*"; done
find $tree/system.slice -type d \( "$@" \) -printf '{"type": "group", "data": {"%i": "/%P"}}\n'

perf stat --all-cpus --field-separator , --output perf.csv --event instructions,cycles -- sleep "$SECONDS_LONG" &
bpftrace -f json /usr/local/lib/loadlab/trace.bt "$SECONDS_LONG"
status=$?
wait
exit $status
