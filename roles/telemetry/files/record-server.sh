#!/bin/bash
# Records once a second the resource use of the processes of some services, and a database's counters. Runs
# detached on the server, as its own service, until it is stopped or times out. Uses bash, which reads the clock
# and the lists of processes without starting a process.
#
# Environment: DIR (directory for the files), UNITS (name=unit, separated by spaces; a unit may be a pattern),
# DATABASE (name of the database; empty for none).
#
# Writes processes.txt.gz and, with a database, database.jsonl.gz. A reading of processes.txt is
# "# reading <unix seconds>", a line "# <name> <pid>…" for each name, and lines with their file:
# /proc/<pid>/stat whole, and the context switches of each thread. A line of database.jsonl is what
# database.sql returns.
set -u
export LC_ALL=C
mkdir -p "$DIR" && cd "$DIR" || exit 1
here=$(dirname "$0")
exec >processes.txt

query=$(cat "$here/database.sql")
psql=(setpriv --reuid=postgres --regid=postgres --init-groups
    psql -X -q -A -t -v "database=$DATABASE" -d postgres)

declare -A lists
names=()
for each in $UNITS; do
    name=${each%%=*}
    names+=("$name")
    for group in $(systemctl show --property=ControlGroup --value "${each#*=}"); do
        for root in /sys/fs/cgroup /sys/fs/cgroup/systemd; do
            [ ! -e "$root$group/cgroup.procs" ] || lists[$name]+=" $root$group/cgroup.procs"
        done
    done
done

reading() {
    local name list paths=() pids some
    printf '# reading %s\n' "$EPOCHREALTIME"
    for name in "${names[@]}"; do
        pids=()
        for list in ${lists[$name]:-}; do
            some=()
            # A stopped service has no list.
            mapfile -t some 2>/dev/null <"$list"
            pids+=("${some[@]}")
        done
        echo "# $name ${pids[*]}"
        for pid in "${pids[@]}"; do paths+=("/proc/$pid/stat" "/proc/$pid/task/"*/status); done
    done
    # A process that ended in the meantime has no files.
    grep -Hs -e '^[0-9]' -e '_ctxt_switches:' "${paths[@]}" </dev/null
}

over='' asking=''
trap 'over=1' TERM
echo "# ticks $(getconf CLK_TCK) page $(getconf PAGESIZE)"
if [ -n "$DATABASE" ]; then
    "${psql[@]}" <<<"$query \\watch 1" >>database.jsonl 2>>database.err &
    asking=$!
fi
while [ -z "$over" ]; do
    reading
    sleep 1 &
    wait $!
done
# Final reading, of the counters up to now; psql's \watch is not part of it.
reading
if [ -n "$asking" ]; then
    kill "$asking" 2>/dev/null
    wait "$asking"
    "${psql[@]}" <<<"$query;" >>database.jsonl 2>>database.err
    gzip -f -1 database.jsonl
    [ -s database.err ] || rm -f database.err
fi
gzip -f -1 processes.txt
