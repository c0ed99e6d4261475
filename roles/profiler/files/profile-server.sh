#!/bin/sh
# Profiles the busiest process of the application while it is under load. Runs detached on the server,
# as a service of its own, as root.
#
# From the environment: DIR (where the files go), AFTER (seconds until it begins), SECONDS_LONG (whole
# seconds to sample for), RATE (samples a second).
#
# Leaves profile.txt, a line for each stack, its frames from the outermost on with semicolons between
# them, and how many samples had it; profile.log is what py-spy said.
set -u
mkdir -p "$DIR" && cd "$DIR" || exit 1
spy=/opt/loadlab/profiler/venv/bin/py-spy
exec >profile.log 2>&1
sleep "$AFTER"

group=$(systemctl show --property=ControlGroup --value loadlab-app)
for root in /sys/fs/cgroup /sys/fs/cgroup/systemd; do
    [ ! -e "$root$group/cgroup.procs" ] || list=$root$group/cgroup.procs
done
ticks() { # process and CPU ticks of each
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

# Idle samples too. Native frames cannot be had of every process.
for native in --native ''; do
    "$spy" record --pid "$busiest" --format raw --output profile.txt --idle --function $native \
        --rate "$RATE" --duration "$SECONDS_LONG" && exit 0
    rm -f profile.txt
done
exit 1
