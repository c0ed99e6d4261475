#!/bin/bash
# Records the use of a host's cores, link and processes, and on a server the accept queues of its services and a
# database's counters. Keeps the cores of a virtual machine awake meanwhile. Runs detached as its own service, until it is stopped or times out. Uses bash, which reads the
# clock, counters and lists of processes without starting a process.
#
# Environment: DIR (directory for the files), SUFFIX (of their names; empty on a server), UNITS (name=unit, separated
# by spaces; a unit may be a pattern), SESSION (control group of the lab's own login), DATABASE (name of the
# database; empty for none), REQUESTS and ERRORS (the reverse proxy's log of a sample of the requests, and of errors; may
# be left out).
#
# Writes these files:
# - cores.txt.gz, five readings a second: "# reading <unix seconds>", and lines of /proc/stat (each core),
#   /proc/net/dev (each interface) and /proc/pressure/cpu, and "own <control group> <µs> <µs>", the CPU time of each
#   control group of the lab and the part of it in the kernel, and "energy <zone> <name> <most> <µJ>" where the
#   machine counts its energy; once a second also "softnet" and each line of /proc/net/softnet_stat, and
#   "below <interface> <interface>", what a bond or a VLAN consists of, "carrier <interface> <count>", how often it lost its
#   link, and the line "some" of /proc/pressure/memory and /proc/pressure/io after the name of the file; the first and the
#   last reading also have
#   "allowance <interface> <counter> <packets>"
# - processes.txt.gz, one reading a second: "# reading <unix seconds>", a line "# <name> <pid>…" for each name, and
#   lines with their file: /proc/<pid>/stat whole, the context switches and the waiting time of each thread, and the
#   frequency and throttling of each core; at the begin and at the end also the proportional set size of each process
# - on a server, queues.jsonl.gz, five lines a second: what record-queues.py prints of the services
# - with services and a log, reverse_proxy.txt.gz: the sampled requests of the log, at most 200,000 lines, and after "error " and
#   the host's offset from UTC the lines of its error log since the start, at most 50,000
# - with a database, database.jsonl.gz, one line a second: what database.sql returns
set -u
export LC_ALL=C
shopt -s nullglob
mkdir -p "$DIR" && cd "$DIR" || exit 1
here=$(dirname "$0")
cores=cores$SUFFIX.txt processes=processes$SUFFIX.txt
exec >"$processes" 3>"$cores"

query=$(cat "$here/database.sql")
psql=(setpriv --reuid=postgres --regid=postgres --init-groups
    psql -X -q -A -t -v "database=$DATABASE" -d postgres)

# The version 2 tree, which has the CPU time of each group. Its services are the stack, the generator, the telemetry
# and their log. nginx also runs beside another reverse proxy.
tree=/sys/fs/cgroup
[ ! -e $tree/unified/cgroup.procs ] || tree=$tree/unified
own=("$tree"/system.slice/{nginx,prometheus-node-exporter,ssh,sshd,systemd-journald}.service/cpu.stat
    "$tree"/system.slice/system-postgresql.slice/cpu.stat)
case $SESSION in */session-*.scope) own+=("$tree$SESSION/cpu.stat") ;; esac

declare -A lists
names=()
# Not by the shell's own splitting, which would take a pattern of units for one of files.
read -ra units <<<"$UNITS"
for each in "${units[@]}"; do
    name=${each%%=*}
    names+=("$name")
    case ${each#*=} in *'*'* | loadlab-* | nginx.service) ;; *) own+=("$tree/system.slice/${each#*=}/cpu.stat") ;; esac
    for group in $(systemctl show --property=ControlGroup --value "${each#*=}"); do
        for root in /sys/fs/cgroup /sys/fs/cgroup/systemd; do
            [ ! -e "$root$group/cgroup.procs" ] || lists[$name]+=" $root$group/cgroup.procs"
        done
    done
    # A service that is not started yet has no control group.
    lists[$name]=${lists[$name]:-"$tree/system.slice/${each#*=}/cgroup.procs"}
done
hardware=(/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq
    /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count)

# Energy counters (RAPL) of the packages and their memory. A package's cores are in the package.
zones=() zone_names=()
for zone in /sys/class/powercap/intel-rapl:*; do
    { read -r name <"$zone/name" && read -r most <"$zone/max_energy_range_uj"; } 2>/dev/null || continue
    case $name in package-* | dram) zones+=("$zone/energy_uj") zone_names+=("${zone##*/} $name $most") ;; esac
done

counters() {
    local lines=() line group used place
    printf '# reading %s\n' "$EPOCHREALTIME"
    mapfile -t -s 1 -n "$count" lines </proc/stat
    printf '%s\n' "${lines[@]}"
    mapfile -t -s 2 lines </proc/net/dev
    printf '%s\n' "${lines[@]}"
    [ ! -e /proc/pressure/cpu ] || { read -r line </proc/pressure/cpu && printf '%s\n' "$line"; }
    # The lab's services come and go.
    for group in "${own[@]}" "$tree"/system.slice/{loadlab-*.service,snap.wrk2*}/cpu.stat; do
        # All of it, all of it in user mode, all of it in the kernel.
        { mapfile -t -n 3 lines <"$group"; } 2>/dev/null &&
            printf 'own %s %s %s\n' "${group%/cpu.stat}" "${lines[0]#* }" "${lines[2]#* }"
    done
    for place in "${!zones[@]}"; do
        { read -r used <"${zones[place]}"; } 2>/dev/null && printf 'energy %s %s\n' "${zone_names[place]}" "$used"
    done
}
memory() {
    local paths=()
    for pid in $recorded; do paths+=("/proc/$pid/smaps_rollup"); done
    [ ${#paths[@]} = 0 ] || grep -HsE '^(Rss|Pss_Anon|Anonymous):' "${paths[@]}" </dev/null
}
# Packets that the cloud held back or dropped because the host was above an allowance of its instance type, by the
# counters of the network card; few cards have them.
allowances() {
    local device card
    for device in /sys/class/net/*/device; do
        card=${device%/device} card=${card##*/}
        ethtool -S "$card" 2>/dev/null | sed -n "s/^ *\([a-z_]*_allowance_exceeded\): \([0-9]*\)$/allowance $card \1 \2/p"
    done
}
packets() {
    local lines=() link upper lost
    mapfile -t lines </proc/net/softnet_stat
    printf 'softnet %s\n' "${lines[@]}"
    for link in /sys/class/net/*/lower_*; do
        upper=${link%/*}
        printf 'below %s %s\n' "${upper##*/}" "${link##*/lower_}"
    done
    for link in /sys/class/net/*/carrier_down_count; do
        upper=${link%/*}
        { read -r lost <"$link"; } 2>/dev/null && printf 'carrier %s %s\n' "${upper##*/}" "$lost"
    done
    for link in memory io; do
        [ ! -e /proc/pressure/$link ] || { read -r upper </proc/pressure/$link && printf '%s %s\n' "$link" "$upper"; }
    done
}
# Processors of the machine, which may be more than the host's own.
count=$(grep -c '^cpu[0-9]' /proc/stat)

reading() {
    local name list paths=() pids some
    recorded=''
    printf '# reading %s\n' "$EPOCHREALTIME"
    for name in "${names[@]}"; do
        pids=()
        for list in ${lists[$name]:-}; do
            some=()
            # A stopped service has no list.
            { mapfile -t some <"$list"; } 2>/dev/null
            pids+=("${some[@]}")
        done
        echo "# $name ${pids[*]}"
        recorded+=" ${pids[*]}"
        for pid in "${pids[@]}"; do
            paths+=("/proc/$pid/stat" "/proc/$pid/task/"*/{status,schedstat})
        done
    done
    [ $((${#paths[@]} + ${#hardware[@]})) = 0 ] ||
        # A process that ended in the meantime has no files.
        grep -Hs -e '^[0-9]' -e '_ctxt_switches:' "${paths[@]}" "${hardware[@]}" </dev/null
}

# Reads again each second, as a process of its own that whatever else wants to run interrupts: a reading takes some ms,
# in which a request would wait. Where the cores leave it no time, its numbers would be of different moments, so it takes
# its share from then on.
read_each_second() {
    local begun lines idle=1
    trap 'over=1' TERM
    chrt --idle --pid 0 "$BASHPID"
    while read -r -t 1 -u 4 || [ -z "$over" ]; do
        begun=${EPOCHREALTIME/./} lines=$(reading)
        if [ -n "$idle" ] && ((${EPOCHREALTIME/./} - begun > 100000)); then
            idle='' && chrt --other --pid 0 "$BASHPID"
        else
            printf '%s\n' "$lines"
        fi
    done
}

# A virtual machine gives an idle core back to the hypervisor, and gets it again late. As long as this file is open, idle
# cores poll instead (PM QoS), where hardware.sh says kept_awake. Machines that are not virtual keep the idle states of
# their tuning.
latency=/dev/cpu_dma_latency
if grep -qsx POLL /sys/devices/system/cpu/cpu0/cpuidle/state0/name && [ -c $latency ] &&
    systemd-detect-virt --quiet --vm && { exec 5>$latency; } 2>/dev/null; then
    printf '\0\0\0\0' >&5
fi

over='' asking='' queueing='' failed=0
# The reverse proxy appends to both, also after the first is cut.
sampled=${REQUESTS:-} errors=${ERRORS:-}
trap 'over=1' TERM
echo "# ticks $(getconf CLK_TCK) page $(getconf PAGESIZE)"
echo "# ticks $(getconf CLK_TCK)" >&3
if [ -n "$DATABASE" ]; then
    # Prepared, as planning it takes several times as long as its answer.
    "${psql[@]}" <<<"PREPARE reading AS $query; EXECUTE reading \\watch 1" >>database.jsonl 2>>database.err &
    asking=$!
fi
if [ -z "$SUFFIX" ] && [ ${#names[@]} != 0 ]; then
    sources=()
    for name in "${names[@]}"; do
        for list in ${lists[$name]}; do sources+=("$name=$list"); done
    done
    python3 -IS "$here/record-queues.py" "${sources[@]}" >queues.jsonl &
    queueing=$!
fi
if [ -n "$queueing" ] && [ -e "$sampled" ]; then
    : >"$sampled"
    [ ! -e "$errors" ] || failed=$(stat -c %s "$errors")
fi
# A pipe that nobody writes to: to read from it is to sleep, without a process.
exec 4<> <(:)
reading
memory
read_each_second &
reader=$! number=0
while [ -z "$over" ]; do
    counters >&3
    [ $number != 0 ] || allowances >&3
    ((number++ % 5)) || packets >&3
    read -r -t 0.2 -u 4
done
# Final reading, of the counters up to now; psql's \watch is not part of it.
kill "$reader" 2>/dev/null
wait "$reader"
counters >&3
allowances >&3
packets >&3
reading
memory
if [ -n "$asking" ]; then
    kill "$asking" 2>/dev/null
    wait "$asking"
    "${psql[@]}" <<<"$query;" >>database.jsonl 2>>database.err
    gzip -f -1 database.jsonl
    [ -s database.err ] || rm -f database.err
fi
if [ -n "$queueing" ] && [ -e "$sampled" ]; then
    {
        head -n 200000 "$sampled"
        [ ! -e "$errors" ] || tail -c "+$((failed + 1))" "$errors" | head -n 50000 | cut -c -600 | sed "s/^/error $(date +%z) /"
    } | gzip -1 >reverse_proxy.txt.gz
fi
if [ -n "$queueing" ]; then
    kill "$queueing" 2>/dev/null
    wait "$queueing"
    gzip -f -1 queues.jsonl
fi
gzip -f -1 "$processes" "$cores"
