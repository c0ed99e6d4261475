#!/bin/bash
# Creates and removes local hosts: system containers on an overlay of the cached base file system, each in its own
# network namespace; or virtual machines, each with a disk that is made of that overlay. Prints "changed" if it changed
# anything, "emulated" if it boots virtual machines without KVM, and nothing otherwise.
#
#   lab-host.sh up FRESH BASE HOSTS PAIRS  creates the management network, all hosts in parallel, and the
#                                          test link of each pair; returns when SSH answers
#   lab-host.sh first-boot NAME ADDRESS BASE TREE CPUS  creates the management network and boots one host that has
#                                          only the files of TREE and what its first boot makes of them, as an image
#                                          of a cloud; returns at once
#   lab-host.sh alive BASES PAIR...        exit status 0 if all hosts run, on a base of that name, and are linked
#   lab-host.sh down NAME...               removes hosts, in parallel
#   lab-host.sh network-up                 creates the management network
#   lab-host.sh network-down               removes the management network
#
# FRESH is true (recreate running hosts) or false; BASE is the directory of the base file system, BASES its name without
# the hash; HOSTS are words NAME,ADDRESS,TEST_ADDRESS,CPUS; PAIRS are words SERVER,CLIENT,CLIENT…
#
# Environment: LAB_STATE (directory of the running hosts), LAB_CACHE (directory of package caches, for up), LAB_SUBNET (a.b,
# the first numbers of the lab's addresses), LAB_MEMORY (MiB of each virtual machine; empty or unset for containers). The
# management link is a.b.0.0/24, the controller's address on it a.b.0.1.
set -eu

# A lab is named by its subnet, so that several can be up. An interface's name has at most 15 characters.
lab=loadlab-${LAB_SUBNET/./-}
network=$LAB_SUBNET.0.0/24
gateway=$LAB_SUBNET.0.1
# Uplinks whose forwarding was off before the first lab, one a line; .all has what that of all interfaces was.
forwarding=/run/loadlab-forwarding
# Table of nftables that keeps others from routing through them.
guard=loadlab-forwarding

state() { # the directory of the running hosts; the mark lets teardown remove it
    mkdir -p -m 700 "$LAB_STATE"
    touch "$LAB_STATE/.loadlab"
}

host_dir() { echo "$LAB_STATE/hosts/$1"; }
netns() { echo "$lab-$1"; }
port() { echo "${lab/load/}-${1##*.}"; } # the bridge's interface to the host of an address
# A virtual machine's end of the test link, and the bridge of a server that joins them.
test_port() { echo "$(port "$1")t"; }
test_bridge() { echo "$(port "$(cat "$(host_dir "$1")/address")")b"; }
machines() { [ -n "${LAB_MEMORY-}" ]; }

hierarchies() { # cgroup trees that systemd uses: one with cgroup v2, two with v1
    for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
        [ ! -e "$tree/cgroup.procs" ] || echo "$tree"
    done
}

members() { # pids of all processes of a host, including its supervisor
    for tree in $(hierarchies); do
        [ ! -d "$tree/$lab-$1" ] || find "$tree/$lab-$1" -name cgroup.procs -exec cat {} +
    done | sort -un
}

supervisor() { # pid of the host's systemd-nspawn or QEMU, unless the number was reused
    pid=$(cat "$(host_dir "$1")/pid" 2>/dev/null) || return 1
    { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qE -- "(--machine=|-name )$lab-$1 " || return 1
    echo "$pid"
}

alive() {
    supervisor "$1" >/dev/null || return 1
    machines || { [ -e "/run/netns/$(netns "$1")" ] && mountpoint -q "$(host_dir "$1")/root"; }
}

network_up() (
    flock 8
    if ! ip link show dev "$lab" >/dev/null 2>&1; then
        ip link add "$lab" type bridge
        ip address add "$gateway/24" dev "$lab"
        ip link set "$lab" up
        echo changed
    fi
    # Enable forwarding for these two interfaces only; remember that the uplink's was off, for teardown.
    echo 1 >"/proc/sys/net/ipv4/conf/$lab/forwarding"
    uplink=$(ip -4 route show default | sed -n 's/.* dev \([^ ]*\).*/\1/p' | head -n 1)
    if [ -n "$uplink" ] && [ "$(cat "/proc/sys/net/ipv4/conf/$uplink/forwarding")" = 0 ]; then
        [ -s $forwarding ] || cat /proc/sys/net/ipv4/conf/all/forwarding >$forwarding.all
        grep -qsxF -- "$uplink" $forwarding || echo "$uplink" >>$forwarding
        echo changed
    fi
    # This machine is no router of its neighbours. What it answers or publishes itself passes, as with Docker.
    if [ -s $forwarding ]; then
        nft -f - <<EOF
table ip $guard
delete table ip $guard
table ip $guard {
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname { $(sed 's/.*/"&"/' $forwarding | paste -sd,) } oifname != "loadlab*" drop
  }
}
EOF
        forward 1
    fi
    if ! nft list table ip "$lab" >/dev/null 2>&1; then
        nft -f - <<EOF
table ip $lab {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr $network oifname != "$lab" masquerade
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    oifname "$lab" iifname != "$lab" ct state != { established, related } drop
  }
}
EOF
        echo changed
    fi
) 8>>$forwarding.lock

forward() { # 1 or 0: switches the uplinks that are remembered and still there
    while read -r uplink; do
        [ ! -d "/proc/sys/net/ipv4/conf/$uplink" ] || echo "$1" >"/proc/sys/net/ipv4/conf/$uplink/forwarding"
    done <$forwarding
}

network_down() (
    flock 8
    if nft list table ip "$lab" >/dev/null 2>&1; then
        nft delete table ip "$lab"
        echo changed
    fi
    if ip link show dev "$lab" >/dev/null 2>&1; then
        ip link delete "$lab"
        echo changed
    fi
    # Another lab may be up.
    if [ -s $forwarding ] && ! ip -o link show type bridge | grep -q ' loadlab'; then
        # Another program may need it by now, such as Docker, which turns it on for all interfaces.
        [ "$(cat $forwarding.all 2>/dev/null || echo 0)" != "$(cat /proc/sys/net/ipv4/conf/all/forwarding)" ] || forward 0
        nft -f - <<EOF
table ip $guard
delete table ip $guard
EOF
        rm -f $forwarding $forwarding.all
        echo changed
    fi
) 8>>$forwarding.lock

down() {
    local address port
    dir=$(host_dir "$1")
    # A persistent SSH connection would outlive the host and be reused for the next host at this address.
    address=$(cat "$dir/address" 2>/dev/null || echo none)
    socket=$LAB_STATE/ssh-$address
    if [ -S "$socket" ]; then
        ssh -q -o "ControlPath=$socket" -O exit "$1" 2>/dev/null || rm -f "$socket"
    fi
    # Kill everything in the host's control groups: it outlives a killed supervisor.
    tries=0
    while pids=$(members "$1") && [ -n "$pids" ]; do
        for pid in $pids; do kill -KILL "$pid" 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; done
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "lab-host.sh: processes of host $1 do not end: $(echo "$pids" | xargs)" >&2; exit 1; }
        sleep 0.03
        [ "$tries" -gt 1 ] || echo changed
    done
    while mountpoint -q "$dir/root"; do
        umount "$dir/root" || { sleep 0.2; umount "$dir/root"; }
        echo changed
    done
    if [ -e "/run/netns/$(netns "$1")" ]; then
        ip netns delete "$(netns "$1")"
        echo changed
    fi
    # A link may exist for a moment after its namespace is deleted.
    port=$(port "$address")
    for port in "$port" "$(test_port "$address")" "${port}b"; do
        if ip link show dev "$port" >/dev/null 2>&1; then
            ip link delete "$port" 2>/dev/null || ! ip link show dev "$port" >/dev/null 2>&1
            echo changed
        fi
    done
    if [ -e "$dir" ]; then
        rm -rf --one-file-system "$dir"
        echo changed
    fi
    for hierarchy in $(hierarchies); do
        [ ! -d "$hierarchy/$lab-$1" ] || find "$hierarchy/$lab-$1" -depth -type d -exec rmdir {} +
    done
}

up() {
    name=$1 address=$2 test_address=$3 cpus=$4 base=$5 fresh=$6
    dir=$(host_dir "$name")
    if [ "$fresh" = false ] && [ "$(cat "$dir/base" 2>/dev/null)" = "$base" ]; then
        if alive "$name"; then return; fi
        # A machine without power keeps its disk.
        if [ -e "$dir/disk" ] && [ "$(cat "$dir/address" "$dir/test_address" | xargs)" = "$address $test_address" ]; then
            machine "$name" "$address" "$test_address" "$cpus"
            return
        fi
    fi
    furnish "$name" "$address" "$base"
    echo "$test_address" >"$dir/test_address"
    echo "$name" >"$root/etc/hostname"
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$name" >"$root/etc/hosts"
    tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
    install -d -m 700 "$root/root/.ssh"
    install -m 600 "$LAB_STATE/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
    rm -f "$root"/etc/ssh/ssh_host_*
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$root/etc/ssh/ssh_host_ed25519_key"
    printf 'ListenAddress %s\nHostKey /etc/ssh/ssh_host_ed25519_key\nPasswordAuthentication no\n' \
        "$address" >"$root/etc/ssh/sshd_config.d/loadlab.conf"
    (
        flock 9
        touch "$LAB_STATE/known_hosts"
        grep -v "^$address " "$LAB_STATE/known_hosts" >"$LAB_STATE/known_hosts.new" || true
        echo "$address $(cut -d' ' -f1,2 "$root/etc/ssh/ssh_host_ed25519_key.pub")" >>"$LAB_STATE/known_hosts.new"
        mv "$LAB_STATE/known_hosts.new" "$LAB_STATE/known_hosts"
    ) 9>>"$LAB_STATE/known_hosts.lock"

    # Services of the distribution that wake up on their own have no place in a measurement.
    for timer in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer; do
        ln -sf /dev/null "$root/etc/systemd/system/$timer"
    done

    if machines; then
        install_disk "$address" "$test_address"
        machine "$name" "$address" "$test_address" "$cpus"
        return
    fi
    # Package caches survive the host; each host has its own.
    mkdir -p "$LAB_CACHE/apt/$lab-$name/partial" "$LAB_CACHE/pip/$lab-$name" "$LAB_CACHE/deps/$lab-$name"
    mkdir -p "$root/opt/loadlab/deps"

    boot "$name" "$address" "$cpus" \
        "--bind=$LAB_CACHE/apt/$lab-$name:/var/cache/apt/archives" \
        "--bind=$LAB_CACHE/pip/$lab-$name:/root/.cache/pip" \
        "--bind=$LAB_CACHE/deps/$lab-$name:/opt/loadlab/deps" \
        --resolv-conf=copy-host --console=pipe
}

first_boot() {
    name=$1 address=$2 base=$3 tree=$4 cpus=$5
    state
    network_up
    furnish "$name" "$address" "$base"
    cp -r "$tree/." "$root/"
    : >"$root/etc/machine-id"
    # Package lists are not in an image; the first boot reads them.
    rm -rf "$root"/var/lib/apt/lists/*
    # With a pipe, the host has no /dev/console. Its own resolver's file gives way to the controller's.
    boot "$name" "$address" "$cpus" --resolv-conf=replace-host --console=read-only
}

furnish() { # name, address, base: the directory and the file system of a new host, as $dir and $root
    down "$1"
    dir=$(host_dir "$1")
    root=$dir/root
    mkdir -p "$dir/upper" "$dir/work" "$root"
    echo "$2" >"$dir/address"
    echo "$3" >"$dir/base"
    mount -t overlay "$lab-$1" -o "lowerdir=$3,upperdir=$dir/upper,workdir=$dir/work" "$root"
}

boot() { # name, address, cpus, more options of systemd-nspawn: joins a furnished host to the network and boots it
    name=$1 address=$2 cpus=$3
    shift 3
    ns=$(netns "$name")
    ip netns add "$ns"
    ip -n "$ns" link set lo up
    ip link add "$(port "$address")" type veth peer name mgmt0 netns "$ns"
    ip link set "$(port "$address")" master "$lab" up
    ip -n "$ns" address add "$address/24" dev mgmt0
    ip -n "$ns" link set mgmt0 up
    ip -n "$ns" route add default via "$gateway"

    # CAP_NET_ADMIN lets the host shape its network, like a machine.
    # At most a million open files; the controller's own limit caps that.
    nofile=$(ulimit -H -n)
    [ "$nofile" != unlimited ] && [ "$nofile" -le 1048576 ] || nofile=1048576
    # With it, the recorder keeps the cores awake where this machine is a virtual one.
    [ ! -e /dev/cpu_dma_latency ] || set -- "$@" --bind=/dev/cpu_dma_latency
    SYSTEMD_NSPAWN_API_VFS_WRITABLE=network start "$name" systemd-nspawn --quiet --boot --directory="$root" \
        "--machine=$lab-$name" --register=no --keep-unit \
        "--network-namespace-path=/run/netns/$ns" --capability=CAP_NET_ADMIN "--cpu-affinity=$cpus" \
        "--rlimit=RLIMIT_NOFILE=$nofile" "$@"
}

start() ( # name, program, its arguments: runs a furnished host
    # A control group per host: two systemd instances in one would manage each other's services.
    for hierarchy in $(hierarchies); do
        mkdir -p "$hierarchy/$lab-$1"
        echo "$BASHPID" >"$hierarchy/$lab-$1/cgroup.procs"
    done
    start-stop-daemon --start --background --make-pidfile --pidfile "$dir/pid" --output "$dir/console.log" \
        --exec "/usr/bin/$2" -- "${@:3}"
    echo changed
)

kvm() { # whether KVM boots a machine: a sector whose program ends QEMU with status 33 (/dev/kvm may exist and fail)
    { printf '\260\020\346\364\364' && head -c 505 /dev/zero && printf '\125\252'; } >"$LAB_STATE/kvm"
    status=0
    timeout 5 qemu-system-x86_64 -nodefaults -display none -accel kvm -cpu host -m 16 -no-reboot \
        -device isa-debug-exit,iobase=0xf4,iosize=1 -drive "file=$LAB_STATE/kvm,format=raw,if=floppy" \
        >/dev/null 2>&1 || status=$?
    [ "$status" = 33 ]
}

mac() { # address: the card of an IPv4 address
    IFS=. read -r -a bytes <<<"$1"
    printf '52:54:%02x:%02x:%02x:%02x' "${bytes[@]}"
}

card() { # name, address, more lines of its network: how the furnished machine sets up a card
    printf '[Match]\nMACAddress=%s\n[Link]\nName=%s\n' "$(mac "$2")" "$1" >"$root/etc/systemd/network/10-$1.link"
    printf '[Match]\nName=%s\n[Network]\nLinkLocalAddressing=no\nAddress=%s/24\n%b' "$1" "$2" "${3-}" \
        >"$root/etc/systemd/network/10-$1.network"
}

install_disk() { # address, test address: makes the disk of a furnished machine
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    card mgmt0 "$1" "Gateway=$gateway\n"
    card test0 "$2"
    mke2fs -q -t ext4 -d "$root" "$dir/disk.part" 16G
    umount "$root"
    mv "$dir/disk.part" "$dir/disk"
}

machine() { # name, address, test address, cpus: boots a machine from its disk
    name=$1 address=$2 test_address=$3 cpus=$4
    port=$(port "$address") test=$(test_port "$address")
    ip link delete "$port" 2>/dev/null || ! ip link show dev "$port" >/dev/null 2>&1
    ip link delete "$test" 2>/dev/null || ! ip link show dev "$test" >/dev/null 2>&1
    cores=$(taskset -c "$cpus" nproc)
    # Several queues on any machine, so that they can be set.
    queues=$((cores < 2 ? 2 : cores > 8 ? 8 : cores))
    ip tuntap add dev "$port" mode tap
    ip link set "$port" master "$lab" up
    ip tuntap add dev "$test" mode tap multi_queue
    processor=(-accel tcg -cpu max) vhost=off
    if [ -e "$LAB_STATE/kvm-works" ]; then
        processor=(-accel kvm -cpu host)
        [ ! -e /dev/vhost-net ] || vhost=on
    fi
    # GRUB begins as a kernel would; it reads its settings and Linux from the disk, as on any machine.
    start "$name" taskset -c "$cpus" qemu-system-x86_64 -name "$lab-$name" -nodefaults -no-user-config -display none \
        -sandbox on,spawn=deny,obsolete=deny "${processor[@]}" -smp "$cores" -m "$LAB_MEMORY" -rtc base=utc \
        -kernel "$(cat "$dir/base")/boot/grub-loadlab" -drive "file=$dir/disk,format=raw,if=virtio" \
        -netdev "tap,id=mgmt0,ifname=$port,script=no,downscript=no" \
        -device "virtio-net-pci,netdev=mgmt0,mac=$(mac "$address"),romfile=" \
        -netdev "tap,id=test0,ifname=$test,script=no,downscript=no,vhost=$vhost,queues=$queues" \
        -device "virtio-net-pci,netdev=test0,mac=$(mac "$test_address"),romfile=,mq=on,vectors=$((2 * queues + 2))" \
        -device virtio-rng-pci -serial stdio
}

# The test link of containers is a veth pair between server and client, or a bridge in the server's namespace for
# several clients. That of virtual machines is a bridge without an address.
kind() { if [ $# = 2 ]; then echo veth; else echo bridge; fi; } # server, its clients

joined() { # server, its clients: whether the bridge has all of them
    bridge=$(test_bridge "$1")
    for name in "$@"; do
        ip -o link show dev "$(test_port "$(cat "$(host_dir "$name")/address")")" 2>/dev/null | grep -qw "master $bridge" ||
            return 1
    done
}

join() { # server, its clients
    if joined "$@"; then return; fi
    bridge=$(test_bridge "$1")
    ip link show dev "$bridge" >/dev/null 2>&1 || ip link add "$bridge" type bridge
    # Not even an address of IPv6: this machine takes no part.
    ip link set "$bridge" addrgenmode none
    ip link set "$bridge" up
    for name in "$@"; do
        test=$(test_port "$(cat "$(host_dir "$name")/address")")
        ip link set "$test" addrgenmode none
        ip link set "$test" master "$bridge" up
    done
    echo changed
}

linked() { # server, its clients
    if machines; then
        joined "$@"
        return
    fi
    for name in "$@"; do ip -n "$(netns "$name")" link show dev test0 >/dev/null 2>&1 || return 1; done
    ip -n "$(netns "$1")" -d link show dev test0 | grep -qw "$(kind "$@")"
}

link() { # server, its clients
    if machines; then
        join "$@"
        return
    fi
    if linked "$@"; then return; fi
    server=$(netns "$1")
    for name in "$@"; do
        end=$(netns "$name")
        ip -n "$end" link delete test0 2>/dev/null || ! ip -n "$end" link show dev test0 >/dev/null 2>&1
    done
    if [ "$(kind "$@")" = veth ]; then
        ip -n "$server" link add test0 type veth peer name test0 netns "$(netns "$2")"
    else
        ip -n "$server" link add test0 type bridge
        for name in "${@:2}"; do
            ip -n "$server" link add "to-$name" type veth peer name test0 netns "$(netns "$name")"
            ip -n "$server" link set "to-$name" master test0 up
        done
    fi
    for name in "$@"; do
        ip -n "$(netns "$name")" address add "$(cat "$(host_dir "$name")/test_address")/24" dev test0
        ip -n "$(netns "$name")" link set test0 up
    done
    echo changed
}

answers() { # waits until SSH answers at an address of the management link
    local limit_s=60 patience_s=1 begun=$SECONDS
    # An emulated machine boots for minutes, and sends its first line after seconds. sshd may refuse who hangs up often.
    ! machines || limit_s=600 patience_s=60
    until timeout $patience_s bash -c 'exec 3<>"/dev/tcp/$0/22" && read -r line <&3 && [[ $line == SSH-* ]]' "$1" 2>/dev/null; do
        [ $((SECONDS - begun)) -lt $limit_s ] || { echo "lab-host.sh: no SSH at $1 after $limit_s s" >&2; return 1; }
        sleep 0.03
    done
}

up_all() {
    fresh=$1 base=$2 hosts=$3 pairs=$4
    state
    [ -e "$LAB_STATE/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C loadlab -f "$LAB_STATE/id_ed25519"
    network_up
    if machines; then
        rm -f "$LAB_STATE/kvm-works"
        if kvm; then touch "$LAB_STATE/kvm-works"; else echo emulated; fi
    fi
    each "$hosts" up "$base" "$fresh"
    for pair in $pairs; do
        IFS=, read -r -a members <<<"$pair"
        link "${members[@]}"
    done
    for host in $hosts; do
        IFS=, read -r _ address _ <<<"$host"
        answers "$address"
    done
}

each() { # words, function, more arguments: calls the function with each word's parts, in parallel
    words=$1 function=$2
    shift 2
    pids=""
    for word in $words; do
        IFS=, read -r -a parts <<<"$word"
        "$function" "${parts[@]}" "$@" &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid"; done
}

command=${1:?command missing, see the head of this file}
shift
case $command in
up) up_all "$@" ;;
first-boot) first_boot "$@" ;;
network-up) network_up ;;
network-down) network_down ;;
alive)
    bases=$1
    shift
    for pair in "$@"; do
        IFS=, read -r -a members <<<"$pair"
        for name in "${members[@]}"; do
            alive "$name"
            grep -q "/$bases-[0-9a-f]*$" "$(host_dir "$name")/base"
        done
        linked "${members[@]}"
    done
    ;;
down) each "$*" down ;;
*) echo "lab-host.sh: unknown command '$command', see the head of this file" >&2; exit 2 ;;
esac
