# shellcheck shell=sh
# Prints the hardware settings that affect how stable measurements are, one "name<tab>value" per line. A setting
# that the host lacks or hides has no line. Changes nothing.
# Reads TEST_ADDRESS (IPv4 address on the test link), OWN_ADDRESS (that the controller connected to) and the function
# of files/cards.sh; loadlab/hosts/hardware.py parses the output.
PATH=$PATH:/usr/sbin:/sbin
SYS=/sys
PROC=/proc
DEV=/dev
say() { [ -z "$2" ] || printf '%s\t%s\n' "$1" "$2"; }
of() { cat "$1" 2>/dev/null; }
with_address() { ip -o address show to "${1:-0.0.0.0}" 2>/dev/null | awk '{ print $2; exit }'; }

interface() {
    path=$SYS/class/net/$1
    driver=$(readlink "$path/device/driver")
    # A virtual interface (bond, veth) has no driver link; only ethtool reports its driver.
    [ -n "$driver" ] || driver=$(ethtool -i "$1" 2>/dev/null | sed -n "s/^driver: //p")
    say driver "${driver##*/}"
    say speed_mbit "$(of "$path/speed")"
    say duplex "$(of "$path/duplex")"
    say mtu "$(of "$path/mtu")"
    # Queues, and the processors to which the kernel spreads what one receives or from which one sends.
    for queue in "$path"/queues/rx-*; do
        [ ! -e "$queue" ] || printf 'queue\t%s %s\n' "${queue##*/rx-}" "$(of "$queue/rps_cpus")"
    done
    for queue in "$path"/queues/tx-*; do
        [ ! -e "$queue" ] || printf 'sender\t%s %s\n' "${queue##*/tx-}" "$(of "$queue/xps_cpus")"
    done
    # The interrupts of a virtio card belong to its parent device.
    interrupts=$path/device/msi_irqs
    [ "${driver##*/}" != virtio_net ] || interrupts=$path/device/../msi_irqs
    for file in "$interrupts"/*; do
        cpus=$(of "$PROC/irq/${file##*/}/effective_affinity_list")
        say interrupt "${cpus:+${file##*/} $cpus}"
    done
    # A group of features is fixed where each of its members, which are indented below it, is marked so.
    ethtool -k "$1" 2>/dev/null | awk '
        function tell() { if (name) print "offload\t" name, value (own || members && !free ? " fixed" : "") }
        /^[^ \t]/ { tell(); name = "" }
        /^(tcp-segmentation-offload|generic-segmentation-offload|generic-receive-offload):/ {
            name = $1; sub(/:$/, "", name); value = $2; own = $3 == "[fixed]"; members = free = 0; next
        }
        { members++; free += $3 != "[fixed]" }
        END { tell() }'
    ethtool -c "$1" 2>/dev/null | sed -n -e 's/^Adaptive RX: \(on\|off\).*/coalescing\tadaptive-rx \1/p' \
        -e 's/^\([rt]x-\(usecs\|frames\)\):[[:space:]]*\([0-9]*\)$/coalescing\t\1 \3/p'
}

nic=$(with_address "$TEST_ADDRESS")
say nic "$nic"
say management_nic "$(with_address "$OWN_ADDRESS")"
if [ -n "$nic" ]; then
    interface "$nic"
    below=$(cards "$nic")
    if [ "$below" != "$nic" ]; then
        for each in $below; do say card "$each" && interface "$each"; done
    fi
fi

for file in "$SYS"/devices/system/cpu/cpu*/cpufreq/scaling_governor; do say governor "$(of "$file")"; done
# intel_pstate has a flag for off, the other drivers one for on.
say no_turbo "$(of "$SYS/devices/system/cpu/intel_pstate/no_turbo")"
say boost "$(of "$SYS/devices/system/cpu/cpufreq/boost")"
say smt "$(of "$SYS/devices/system/cpu/smt/active")"
# Most virtual machines, and kernels that were built without it, have no cpuidle.
driver=$(of "$SYS/devices/system/cpu/cpuidle/current_driver")
say idle_driver "${driver:-none}"
for state in "$SYS"/devices/system/cpu/cpu*/cpuidle/state*; do
    if [ -e "$state/name" ] && read -r name <"$state/name" && read -r us <"$state/latency" && read -r off <"$state/disable"; then
        printf 'idle\t%s %s %s\n' "$us" "$off" "$name"
    fi
done | sort -u
# Whether record-host.sh can keep the cores awake: those of a virtual machine that can poll. Tries it and reads it back.
latency=$DEV/cpu_dma_latency
if [ "$(of "$SYS/devices/system/cpu/cpu0/cpuidle/state0/name")" = POLL ] && [ -e "$latency" ] &&
    systemd-detect-virt --quiet --vm; then
    us=$({ exec 5>"$latency" && printf '\0\0\0\0' >&5 && od -An -td4 "$latency" | tr -d ' '; } 2>/dev/null)
    [ "$us" != 0 ] || say kept_awake yes
fi
for file in "$SYS"/devices/system/node/node*/cpulist; do say node "$(of "$file")"; done
say numa_balancing "$(of "$PROC/sys/kernel/numa_balancing")"

[ "$(systemctl show --property=LoadState --value irqbalance.service 2>/dev/null)" = loaded ] &&
    irqbalance=$(systemctl show --property=ActiveState --value irqbalance.service)
say irqbalance "${irqbalance:-absent}"
if rules=$(nft -a list ruleset 2>/dev/null); then
    say firewall_rules "$(echo "$rules" | grep -v '{ # handle' | grep -c '# handle')"
elif rules=$(iptables-save 2>/dev/null); then
    say firewall_rules "$(echo "$rules" | grep -c '^-A')"
fi
# The files exist where the kernel's module is loaded.
conntrack=$PROC/sys/net/netfilter/nf_conntrack
if [ -e "${conntrack}_max" ]; then
    say conntrack "$(of "${conntrack}_count") $(of "${conntrack}_max")"
else
    say conntrack "0 0"
fi

# A container shares its machine's clock and cannot query its synchronization.
systemd-detect-virt --quiet --container ||
    say clock_synchronised "$(timedatectl show --property=NTPSynchronized --value 2>/dev/null)"
