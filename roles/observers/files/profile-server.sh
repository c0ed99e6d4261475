#!/bin/sh
# Samples the busiest process of the application under load with py-spy. Runs detached on the server, as its own
# service, as root.
#
# Environment: DIR (directory for the files), AFTER (seconds to wait first), SECONDS_LONG (duration in whole
# seconds), LOCK_SECONDS (the last of them, for gil.txt; 0 for none), RATE (samples per second).
#
# Writes profile.txt, one line per call stack: its frames from the outermost inwards, separated by semicolons, and
# the number of samples; gil.txt, the same of the thread that held Python's global lock (GIL), and a last line "#" with
# the number of times that this was looked for; and profile.log, the application's Python files and py-spy's messages.
set -u
mkdir -p "$DIR" && cd "$DIR" || exit 1
spy=/opt/loadlab/profiler/venv/bin/py-spy
exec >profile.log 2>&1
sleep "$AFTER"

group=$(systemctl show --property=ControlGroup --value loadlab-app)
for root in /sys/fs/cgroup /sys/fs/cgroup/systemd; do
    [ ! -e "$root$group/cgroup.procs" ] || list=$root$group/cgroup.procs
done
ticks() { # pid and CPU ticks of each process
    while read -r pid; do
        awk '{ pid = $1; sub(/.*\) /, ""); print pid, $12 + $13 }' "/proc/$pid/stat"
    done <"$list"
}
before=$(ticks)
sleep 0.5
busiest=$(ticks | awk -v before="$before" '
    BEGIN { n = split(before, was); for (i = 1; i < n; i += 2) had[was[i]] = was[i + 1] }
    ($1 in had) && $2 - had[$1] >= most { most = $2 - had[$1]; pid = $1 }
    END { print pid }')
[ -n "$busiest" ] || { echo "no process of loadlab-app"; exit 1; }
echo "process $busiest: $(tr '\0' ' ' <"/proc/$busiest/cmdline")"

# Includes idle samples. Native frames are not available for every process.
for native in --native ''; do
    "$spy" record --pid "$busiest" --format raw --output profile.txt --idle --function $native \
        --rate "$RATE" --duration $((SECONDS_LONG - LOCK_SECONDS)) && break
    rm -f profile.txt
done
[ -e profile.txt ] || exit 1
# Frames of these files are the application's.
(cd "$(systemctl show --property=WorkingDirectory --value loadlab-app)" && find . -name '*.py' | sed 's/^\./own: /')
[ "$LOCK_SECONDS" = 0 ] ||
    { "$spy" record --pid "$busiest" --format raw --output gil.part --idle --gil --function \
        --rate "$RATE" --duration "$LOCK_SECONDS" && echo "# $((RATE * LOCK_SECONDS))" >>gil.part && mv gil.part gil.txt; }
