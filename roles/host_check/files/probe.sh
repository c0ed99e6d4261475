# shellcheck shell=sh
# Prints what this host is, one "name<tab>value" per line. Changes nothing.
# Reads TEST_ADDRESS (IPv4 address on the test link), PEERS (test addresses of the hosts that it measures with,
# separated by spaces), ANSWERS (not empty on a server) and PROGRAMS (of the generators, separated by spaces).
# loadlab/hosts/probe.py parses the output.
say() { printf '%s\t%s\n' "$1" "$2"; }
first() { grep -m 1 "$1" "$2" 2>/dev/null | sed 's/^[^:=]*[:=][[:space:]]*//; s/"//g'; }

say user "$(id -un)"
# With the kernel's boot: machines from copies of one image may share the machine id, containers the boot.
say machine_id "$(cat /etc/machine-id) $(cat /proc/sys/kernel/random/boot_id)"
# Boot time in seconds since 1970. Hosts on the same machine have the same one.
say booted "$(awk '$1 == "btime" { print $2 }' /proc/stat)"
say os "$(first ^ID= /etc/os-release) $(first ^VERSION_ID= /etc/os-release)"
say os_name "$(first ^PRETTY_NAME= /etc/os-release)"
say kernel "$(uname -r)"
say machine "$(uname -m)"
model=$(first '^model name' /proc/cpuinfo)
# An arm64 kernel reports numbers only; lscpu knows the names.
say cpu_model "${model:-$(LC_ALL=C lscpu | sed -n '/^ *Model name: */ { s///p; q }')}"
say cores "$(grep -c '^processor' /proc/cpuinfo)"
say cpus "$(first '^Cpus_allowed_list' /proc/1/status)"
say memory_kib "$(first ^MemTotal /proc/meminfo | sed 's/ kB//')"
say available_kib "$(first ^MemAvailable /proc/meminfo | sed 's/ kB//')"
# Free bytes where the raw files of a load are written.
say free_bytes "$(df --output=avail -B1 /var/lib | tail -n 1 | tr -d ' ')"
say virtualisation "$(systemd-detect-virt)"
say clock_source "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
governor=/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
[ ! -e $governor ] || say governor "$(cat $governor)"
say python "$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')"
say nofile "$(awk '/^Max open files/ { print $5 }' /proc/1/limits)"
say interface "$(ip -o -4 address show to "${TEST_ADDRESS:-0.0.0.0}" | awk '{ print $2; exit }')"
# Interface and source address of the route to each peer; empty without a route. A client uses the source
# address that the kernel selects, a server the address that was asked.
for peer in $PEERS; do
    say route "$peer $(ip -o route get "$peer" ${ANSWERS:+from "$TEST_ADDRESS"} 2>/dev/null | awk '
        { for (i = 1; i < NF; i++) if ($i ~ /^(dev|from|src)$/) found[$i == "dev"] = $(i + 1) }
        END { print found[1], found[0] }')"
done
say own_address "$(echo "$SSH_CONNECTION" | cut -d' ' -f3)"
# Test in a temporary network namespace. A user who may not create one checks the kernel's list of modules.
netem() {
    PATH=$PATH:/usr/sbin:/sbin
    case $(id -u) in
    0) unshare --net tc qdisc add dev lo root netem delay 1ms ;;
    *) command -v tc && cat "/lib/modules/$(uname -r)/modules.dep" "/lib/modules/$(uname -r)/modules.builtin" | grep /sch_netem ;;
    esac >/dev/null 2>&1
}
if (netem); then say netem yes; else say netem no; fi
# What keeps bpftrace from this host.
untraced() {
    ! systemd-detect-virt --quiet --container || echo container
    [ -d /sys/kernel/tracing ] || echo tracefs
    [ -e /sys/fs/cgroup/cgroup.procs ] || [ -e /sys/fs/cgroup/unified/cgroup.procs ] || echo cgroup
    ! grep -qs '\[confidentiality\]' /sys/kernel/security/lockdown || echo lockdown
}
say untraced "$(untraced | paste -sd ' ')"
for program in $PROGRAMS; do
    say program "$program $(PATH=$PATH:/snap/bin && command -v "$program")"
done
# Hosts from which apt downloads packages.
say sources "$(cd /etc/apt && grep -hsE '^(deb[[:space:]]|URIs:|[[:space:]]+http)' sources.list sources.list.d/*.list sources.list.d/*.sources |
    grep -oE 'https?://[^/[:space:]]+' | LC_ALL=C sort -u | paste -sd ' ')"
dpkg-query -W -f 'package\t${Package} ${Version} ${db:Status-Abbrev}\n'
