"""The scripts that make local hosts: their network, in namespaces of its own, and their base."""

import os
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).parents[3] / "roles/local_hosts/files"
# The machine has an uplink to a neighbour, and another network with a guest, for which it routes.
# Their names have a dot, as that of a VLAN has.
MACHINE = """
mount -t tmpfs none /run
mkdir /run/netns
for name in neighbour guest; do ip netns add $name; done
ip link add up.1 type veth peer name eth0 netns neighbour
ip link add vpn.1 type veth peer name eth0 netns guest
for end in "up.1 192.0.2.1" "vpn.1 198.51.100.1"; do
    ip address add ${end#* }/24 dev ${end% *}
    ip link set ${end% *} up
done
ip -n neighbour address add 192.0.2.2/24 dev eth0
ip -n guest address add 198.51.100.2/24 dev eth0
for name in neighbour guest; do ip -n $name link set eth0 up; done
ip -n neighbour route add default via 192.0.2.1
ip -n guest route add default via 198.51.100.1
ip route add default via 192.0.2.2
cd /proc/sys/net/ipv4/conf
echo 1 >vpn.1/forwarding
lab() { LAB_SUBNET=10.$1 "$SCRIPT" network-$2; }
# Nobody listens there, so that who reaches the other end is refused.
reaches() { # namespace, address
    said=$(ip netns exec $1 timeout 0.3 bash -c "</dev/tcp/$2/9" 2>&1) || true
    case $said in *refused*) echo reached ;; *) echo cut ;; esac
}
GUEST=198.51.100.2 NEIGHBOUR=192.0.2.2
"""


def on_machine(commands: str) -> list[str]:
    """The lines that commands print on the machine."""
    words = ["unshare", "--net", "--mount", "bash", "-euc", MACHINE + commands]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SCRIPT": str(FILES / "lab-host.sh")}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        # The machine is no router of its neighbours while a lab is up.
        (
            """
            lab 77 up >/dev/null
            cat up.1/forwarding; reaches neighbour $GUEST
            reaches guest $NEIGHBOUR
            nft delete table ip loadlab-forwarding; reaches neighbour $GUEST
            """,
            ["1", "cut", "reached", "reached"],
        ),
        # One that routes already is left alone.
        (
            """
            echo 1 >up.1/forwarding
            lab 77 up >/dev/null
            reaches neighbour $GUEST
            lab 77 down >/dev/null
            cat up.1/forwarding
            """,
            ["reached", "1"],
        ),
        # Forwarding that another program turns on meanwhile stays.
        (
            """
            lab 77 up >/dev/null
            echo 1 >all/forwarding
            lab 77 down
            cat up.1/forwarding; nft list ruleset
            """,
            [*["changed"] * 3, "1"],
        ),
    ],
)
def test_machine_routes_what_it_routed(commands: str, said: list[str]) -> None:
    assert on_machine(commands) == said


def test_every_uplink_is_as_it_was_when_the_last_lab_is_down() -> None:
    said = on_machine("""
        lab 77 up >/dev/null
        ip route replace default via 198.51.100.2 dev vpn.1
        echo 0 >vpn.1/forwarding
        lab 78 up >/dev/null
        lab 77 up
        cat up.1/forwarding vpn.1/forwarding; reaches neighbour $GUEST
        lab 77 down >/dev/null
        cat up.1/forwarding vpn.1/forwarding; reaches neighbour $GUEST
        lab 78 down
        cat up.1/forwarding vpn.1/forwarding
        nft list ruleset; ls /run; lab 78 down
    """)
    up, down = ["1", "1", "cut"], ["changed"] * 3
    assert said == [*up, *up, *down, "0", "0", "loadlab-forwarding.lock", "netns"]


def test_password_of_a_proxy_is_for_root_alone(tmp_path: Path) -> None:
    for folder in ("ssl/certs", "dpkg/dpkg.cfg.d", "ssh"):
        (tmp_path / "etc" / folder).mkdir(parents=True)
    proxy = "http://me:secret@proxy.example:3128"
    environment = {"PATH": os.environ["PATH"], "http_proxy": proxy}
    subprocess.run([FILES / "base-customize.sh", tmp_path], check=True, env=environment)
    holders = [
        path for path in tmp_path.rglob("*") if path.is_file() and "secret" in path.read_text()
    ]
    assert holders == [tmp_path / "etc/environment"]
    assert holders[0].read_text() == f"http_proxy={proxy}\n"
    assert holders[0].stat().st_mode & 0o777 == 0o600
