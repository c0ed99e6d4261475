# shellcheck shell=sh
# Prints the hardware settings that affect how stable measurements are, one "name<tab>value" per line. A setting
# that the host lacks or hides has no line. Changes nothing.
# Reads TEST_ADDRESS (IPv4 address on the test link) and SSH_CONNECTION; loadlab/hosts/hardware.py parses the output.
PATH=$PATH:/usr/sbin:/sbin
SYS=/sys
say() { [ -z "$2" ] || printf '%s\t%s\n' "$1" "$2"; }
of() { cat "$1" 2>/dev/null; }
with_address() { ip -o address show to "$1" 2>/dev/null | awk '{ print $2; exit }'; }

nic=$(with_address "${TEST_ADDRESS:-0.0.0.0}")
say nic "$nic"
[ -z "$SSH_CONNECTION" ] || say management_nic "$(with_address "$(echo "$SSH_CONNECTION" | cut -d' ' -f3)")"
if [ -n "$nic" ]; then
    card=$SYS/class/net/$nic
    driver=$(readlink "$card/device/driver")
    # A virtual interface (bond, veth) has no driver link; only ethtool reports its driver.
    [ -n "$driver" ] || driver=$(ethtool -i "$nic" 2>/dev/null | sed -n "s/^driver: //p")
    say driver "${driver##*/}"
    say speed_mbit "$(of "$card/speed")"
    say duplex "$(of "$card/duplex")"
    for queue in "$card"/queues/rx-*; do [ ! -e "$queue" ] || say queue "${queue##*/rx-}"; done
    # The interrupts of a virtio card belong to its parent device.
    interrupts=$card/device/msi_irqs
    [ "${driver##*/}" != virtio_net ] || interrupts=$card/device/../msi_irqs
    for file in "$interrupts"/*; do
        cpus=$(of "/proc/irq/${file##*/}/effective_affinity_list")
        say interrupt "${cpus:+${file##*/} $cpus}"
    done
    # A group of features is fixed where each of its members, which are indented below it, is marked so.
    ethtool -k "$nic" 2>/dev/null | awk '
        function tell() { if (name) print "offload\t" name, value (own || members && !free ? " fixed" : "") }
        /^[^ \t]/ { tell(); name = "" }
        /^(tcp-segmentation-offload|generic-segmentation-offload|generic-receive-offload):/ {
            name = $1; sub(/:$/, "", name); value = $2; own = $3 == "[fixed]"; members = free = 0; next
        }
        { members++; free += $3 != "[fixed]" }
        END { tell() }'
fi
for file in "$SYS"/devices/system/cpu/cpu*/cpufreq/scaling_governor; do say governor "$(of "$file")"; done
# intel_pstate has a flag for off, the other drivers one for on.
say no_turbo "$(of "$SYS/devices/system/cpu/intel_pstate/no_turbo")"
say boost "$(of "$SYS/devices/system/cpu/cpufreq/boost")"
say smt "$(of "$SYS/devices/system/cpu/smt/active")"
for file in "$SYS"/devices/system/node/node*/cpulist; do say node "$(of "$file")"; done
# A container shares its machine's clock and cannot query its synchronization.
systemd-detect-virt --quiet --container ||
    say clock_synchronised "$(timedatectl show --property=NTPSynchronized --value 2>/dev/null)"
