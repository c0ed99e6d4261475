"""The role aws_hosts and its inventory, against EC2 in this process: what is asked of AWS, and in
which order. SSH is tests/lab/test_aws.py's."""

import base64
import datetime as dt
import json
import os
import platform
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.lab.bench.plugins.action import ec2_network
from botocore.exceptions import ClientError

from loadlab.hosts import ec2 as aws
from loadlab.hosts import ec2_queries

from .cloud import CONSOLE, HOST_KEY, REGION, Cloud
from .conftest import ROOT, Play
from .policy import CREATES, tags_asked

MAKE = ("tests/aws/make.yml", "-e", "aws_hosts_controller=203.0.113.7")
TEARDOWN = ("playbooks/teardown.yml",)
NOTHING_LEFT = "nothing carries the tag loadlab=loadlab any more"


def instances(cloud: Cloud, **filters: str) -> list[dict[str, Any]]:
    wanted = {"instance-state-name": "running", **filters}
    answer = cloud.client().describe_instances(
        Filters=[{"Name": name, "Values": [value]} for name, value in wanted.items()]
    )
    return [one for each in answer["Reservations"] for one in each["Instances"]]


def in_the_labs_network(cloud: Cloud, one: dict[str, Any]) -> bool:
    """Whether an instance is in the lab's subnet, and behind the lab's security group alone."""
    ec2 = cloud.client()
    tagged = [{"Name": "tag:loadlab", "Values": ["loadlab"]}]
    (subnet,) = ec2.describe_subnets(Filters=tagged)["Subnets"]
    (group,) = ec2.describe_security_groups(Filters=tagged)["SecurityGroups"]
    (interface,) = one["NetworkInterfaces"]
    groups = [each["GroupId"] for each in interface["Groups"]]
    return (one["SubnetId"], groups) == (subnet["SubnetId"], [group["GroupId"]])


def has_route(ec2: Any) -> bool:
    """Whether there is a way to the internet, which an account has not unless it was made."""
    answer = ec2.describe_route_tables(
        Filters=[{"Name": "route.destination-cidr-block", "Values": ["0.0.0.0/0"]}]
    )
    return len(answer["RouteTables"]) > 0


def left(cloud: Cloud) -> dict[str, int]:
    """Kind of resource to how many there are in the account, whoever made them. Without network
    interfaces, which moto keeps when it terminates their instance."""
    ec2 = cloud.client()
    found = {"placement-group": len(cloud.groups), "instance": len(instances(cloud))}
    for kind, (call, rows, _) in aws.KINDS.items():
        if kind not in {*found, "network-interface"}:
            found[kind] = len(getattr(ec2, call)()[rows.removesuffix("[]")])
    return found


def inventory(environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Host to its variables, as the inventory has them; what is not to be templated is wrapped by
    Ansible."""
    listed = subprocess.run(
        ["ansible-inventory", "-i", "inventory/aws", "--list"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    def plain(one: dict[str, Any]) -> Any:
        return one.get("__ansible_unsafe", one)

    return dict(json.loads(listed, object_hook=plain)["_meta"]["hostvars"])


def checked(play: Play, *wishes: dict[str, Any]) -> list[str]:
    """What tests/aws/check.yml prints of each."""
    done = play("tests/aws/check.yml", "-e", json.dumps({"wishes": wishes}))
    assert done.returncode == 0, done.stdout
    told = re.findall(r"^ +(\d+): (.*)$", done.stdout, re.MULTILINE)
    assert [int(number) for number, _ in told] == list(range(len(wishes))), done.stdout
    return [" ".join(text.split()) for _, text in told]


def test_a_pair_from_nothing_and_back(
    cloud: Cloud, play: Play, environment: dict[str, str], tmp_path: Path
) -> None:
    before = left(cloud)
    ec2 = cloud.client()
    # Somebody else's, of another lab and of none, one even under the lab's name.
    strangers = [
        ec2.run_instances(
            ImageId="ami-00000004",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
                }
            ],
        )["Instances"][0]["InstanceId"]
        for tags in (
            {"loadlab": "other", "loadlab_host": "server", "loadlab_group": "servers"},
            {"Name": "loadlab-loadlab-server", "loadlab_host": "server"},
        )
    ]
    with_strangers = left(cloud)
    cloud.calls.clear()

    made = play(*MAKE, "-e", "aws_hosts_auto_approve=true")
    assert made.returncode == 0, made.stdout
    assert "terminates itself at 2026-11-21 13:00:00 UTC" in made.stdout
    told = " ".join(made.stdout.split())
    assert "about 0.73 USD an hour" in told
    assert "no more than about 2.91 USD" in told
    assert "image ami-00000004" in told
    assert "ubuntu" not in told
    assert "us-east-1, account 123456789012 as arn:aws:sts::123456789012:user/moto, tag" in told
    assert "The instances go on until they terminate themselves (about 0.73 USD an hour)" in told
    # As it works in another shell.
    assert "Remove them: `AWS_REGION=us-east-1 ansible-playbook -i inventory/aws play" in told
    # Room for both or for none.
    (asked,) = cloud.called("RunInstances")
    wanted = {
        "MinCount": "2",
        "MaxCount": "2",
        "ImageId": "ami-00000004",
        "InstanceType": "c7i.2xlarge",
        "Placement.GroupName": "loadlab-loadlab",
        "Placement.Tenancy": "default",
        "InstanceInitiatedShutdownBehavior": "terminate",
        "CpuOptions.CoreCount": "4",
        "CpuOptions.ThreadsPerCore": "1",
        "MetadataOptions.HttpTokens": "required",
        "MetadataOptions.HttpPutResponseHopLimit": "1",
        "BlockDeviceMapping.1.DeviceName": "/dev/sda1",
        "BlockDeviceMapping.1.Ebs.VolumeSize": "20",
        "BlockDeviceMapping.1.Ebs.Encrypted": "true",
        "BlockDeviceMapping.1.Ebs.VolumeType": "gp3",
        "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
    }
    assert {key: asked.get(key) for key in wanted} == wanted
    assert tags_asked(asked).keys() == {"instance", "volume", "network-interface"}
    user_data = base64.b64decode(asked["UserData"]).decode()
    assert "+14400 seconds" in user_data
    # What whoever reads them may know.
    assert "PRIVATE" not in user_data

    pair = {one["InstanceId"]: one for one in instances(cloud, **{"tag:loadlab": "loadlab"})}
    assert len(pair) == 2
    assert len({one["Placement"]["AvailabilityZone"] for one in pair.values()}) == 1
    assert all(in_the_labs_network(cloud, one) for one in pair.values())
    (group,) = ec2.describe_security_groups(
        Filters=[{"Name": "tag:loadlab", "Values": ["loadlab"]}]
    )["SecurityGroups"]
    rules = {
        (
            rule["IpProtocol"],
            rule.get("FromPort"),
            *(each["CidrIp"] for each in rule["IpRanges"]),
            *(each["GroupId"] for each in rule["UserIdGroupPairs"]),
        )
        for rule in group["IpPermissions"]
    }
    assert rules == {("tcp", 22, "203.0.113.7/32"), ("-1", None, group["GroupId"])}
    # Everything that carries the tag was made with it: no moment without.
    for action, kinds in CREATES.items():
        (made_by,) = cloud.called(action)
        for kind in kinds:
            assert tags_asked(made_by)[kind]["loadlab"] == "loadlab", action

    # Nothing is taken away that whoever has the account put there.
    ec2.create_tags(Resources=[group["GroupId"]], Tags=[{"Key": "owner", "Value": "somebody"}])
    cloud.calls.clear()

    state = tmp_path / ".local" / "state" / "loadlab" / f"{REGION}-loadlab"
    modes = {path.name: path.stat().st_mode & 0o777 for path in state.iterdir()}
    assert modes == {"id_ed25519": 0o600, "id_ed25519.pub": 0o644, "known_hosts": 0o600}
    assert state.stat().st_mode & 0o777 == 0o700
    known = (state / "known_hosts").read_text().splitlines()
    assert sorted(known) == sorted(f"{name} {HOST_KEY}" for name in pair)

    hosts = inventory(environment)
    assert set(hosts) == {"server", "client"}
    for host in hosts.values():
        one = pair[host["ec2_instance_id"]]
        assert host["ansible_host"] == one["PublicIpAddress"]
        assert host["test_address"] == one["PrivateIpAddress"]
        assert host["test_address"].startswith("10.78.0.")
        assert host["ansible_user"] == "admin"
        found = {**host["cloud_instance"]}
        assert dt.datetime.fromisoformat(found.pop("launched")) <= dt.datetime.now(dt.UTC)
        assert found == {
            "instance_id": one["InstanceId"],
            "type": "c7i.2xlarge",
            "image": "ami-00000004",
            "region": REGION,
            "zone": one["Placement"]["AvailabilityZone"],
            "tenancy": "default",
            "spot": False,
            "disk_gb": 20,
        }

    # Again: nothing is asked of the user, nothing of AWS, and nothing changes.
    again = play(*MAKE, "-v")
    assert again.returncode == 0, again.stdout
    assert "changed=0" in again.stdout
    assert cloud.calls == []

    # Of another type, of another image, by another user, and from an address that is let in or not.
    kind, image, stranger, moved, unmoved = checked(
        play,
        {"aws_hosts_server_type": "c7i.4xlarge"},
        {"aws_hosts_image_id": "ami-00000002"},
        {"aws_hosts_state": str(tmp_path / "other")},
        {"tasks": "reach", "aws_hosts_controller": "198.51.100.9"},
        {"tasks": "reach", "aws_hosts_controller": "203.0.113.7"},
    )
    assert "server is there as 'c7i.2xlarge, debian-13, on demand" in kind
    assert "playbooks/teardown.yml" in kind
    assert "asked for is 'c7i.2xlarge, debian-13" in image
    assert "of ami-00000004 in us-east-1a (running)" in image
    assert "threads per core' of ami-00000002. Ask for" in image
    assert "server, client: there, and made from another machine" in stranger
    assert (
        "address in the internet is 198.51.100.9 now, and the security group lets SSH in from "
        "203.0.113.7/32 only"
    ) in moved
    assert unmoved.startswith("allowed")
    assert cloud.calls == []

    # Where there is nothing, nothing is removed.
    elsewhere = play(*TEARDOWN, "-v", AWS_REGION="eu-west-1")
    assert elsewhere.returncode == 0, elsewhere.stdout
    assert "changed=0" in elsewhere.stdout
    assert (
        "eu-west-1: nothing carried the tag loadlab=loadlab, so nothing was removed. us-east-1 has "
        "it: `AWS_REGION=us-east-1 ansible-playbook"
    ) in " ".join(elsewhere.stdout.split())
    assert cloud.calls == []

    removed = play(*TEARDOWN)
    assert removed.returncode == 0, removed.stdout
    assert NOTHING_LEFT in " ".join(removed.stdout.split())
    assert left(cloud) == with_strangers
    assert not state.exists()
    assert {one["InstanceId"] for one in instances(cloud)} == set(strangers)
    order = [name for name, _ in cloud.calls if name.startswith(("Terminate", "Delete"))]
    assert order[0] == "TerminateInstances"
    assert order[-1] == "DeleteVpc"

    ec2.terminate_instances(InstanceIds=strangers)
    assert left(cloud) == before


def test_a_pair_of_everything_else_in_the_first_zone_with_room_for_both(
    cloud: Cloud, play: Play, environment: dict[str, str]
) -> None:
    """The other image, both architectures, machines of one's own, every thread of a core, and what
    a company asks for. Two types are two requests: what the first zone had room for goes again."""
    cloud.full_for = {("us-east-1a", "c7i.2xlarge"), ("us-east-1b", "c7g.2xlarge")}
    asked = {
        "aws_hosts_image": "ubuntu-24.04",
        "aws_hosts_server_type": "c7g.2xlarge",
        "aws_hosts_tenancy": "dedicated",
        "aws_hosts_threads_per_core": 2,
        "aws_hosts_auto_approve": True,
        "aws_hosts_controller": "203.0.113.7,198.51.100.0/24",
        "aws_hosts_tags": {"cost-center": "42"},
    }
    made = play(MAKE[0], "-e", json.dumps(asked))
    assert made.returncode == 0, made.stdout
    told = " ".join(made.stdout.split())
    # The fee of the region is in it.
    assert "about 2.66 USD an hour" in told
    assert "without what dedicated tenancy adds to each instance" in told
    assert "no test has booted ubuntu-24.04 yet" in told
    assert "us-east-1a has no room for all of them now, the next zone is tried" in told
    pair = instances(cloud)
    assert {one["InstanceType"] for one in pair} == {"c7g.2xlarge", "c7i.2xlarge"}
    assert {one["Placement"]["AvailabilityZone"] for one in pair} == {"us-east-1c"}
    assert all(in_the_labs_network(cloud, one) for one in pair)
    assert len(cloud.called("TerminateInstances")) == 1
    authorized = cloud.called("AuthorizeSecurityGroupIngress")
    networks = {one for call in authorized for key, one in call.items() if key.endswith("CidrIp")}
    assert networks == {"203.0.113.7/32", "198.51.100.0/24"}
    for action, resources in CREATES.items():
        asked_tags = tags_asked(cloud.called(action)[0])
        assert [asked_tags[kind]["cost-center"] for kind in resources] == ["42"] * len(resources)

    kinds = {"c7g.2xlarge": "ami-00000003", "c7i.2xlarge": "ami-00000002"}
    requests = cloud.called("RunInstances")
    assert {one["InstanceType"]: one["ImageId"] for one in requests} == kinds
    for one in requests:
        assert one["Placement.Tenancy"] == "dedicated"
        # Both threads are what a type has unless asked otherwise; of arm64 there is one.
        assert not [name for name in one if name.startswith("CpuOptions")]
    hosts = inventory(environment)
    assert {name: host["ec2_architecture"] for name, host in hosts.items()} == {
        "server": "arm64",
        "client": "x86_64",
    }
    assert {host["ansible_user"] for host in hosts.values()} == {"ubuntu"}


def test_killed_on_the_way_then_no_capacity_then_removed(
    cloud: Cloud, play: Play, environment: dict[str, str], tmp_path: Path
) -> None:
    before = left(cloud)
    ec2 = cloud.client()
    # It asks again until it is killed, so no instance is there yet, however late that is.
    cloud.faults = {"RunInstances": "RequestLimitExceeded"}
    process = subprocess.Popen(
        ["ansible-playbook", "-i", "inventory/aws", *MAKE, "-e", "aws_hosts_auto_approve=true"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 120
        while not has_route(ec2):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # What it asked last may be answered after this: no zone has room for it.
    cloud.full = {f"us-east-1{letter}" for letter in "abcdef"}
    cloud.faults = {}
    assert left(cloud) != before

    # A teardown that ended early: the route leads nowhere.
    (gateway,) = ec2.describe_internet_gateways()["InternetGateways"]
    name = gateway["InternetGatewayId"]
    ec2.detach_internet_gateway(InternetGatewayId=name, VpcId=gateway["Attachments"][0]["VpcId"])
    ec2.delete_internet_gateway(InternetGatewayId=name)

    # Again, as spot: what is there is gone on with. A zone that is asked for is the only one.
    spot = play(
        *MAKE,
        *("-e", "aws_hosts_auto_approve=true", "-e", "aws_hosts_spot=true"),
        *("-e", "aws_hosts_keep=false"),
        *("-e", "aws_hosts_zone=us-east-1b"),
    )
    told = " ".join(spot.stdout.split())
    assert spot.returncode != 0
    assert "the next zone is tried" not in told
    assert "AWS has no capacity for this now in any zone that was tried" in told
    assert "which spot is below" in told
    assert len(cloud.called("CreateVpc")) == 1
    assert len(cloud.called("ReplaceRoute")) == 1
    asked = cloud.called("RunInstances")[-1]
    market = "InstanceMarketOptions."
    assert asked[f"{market}MarketType"] == "spot"
    assert asked[f"{market}SpotOptions.InstanceInterruptionBehavior"] == "terminate"
    # It removes what was begun.
    assert "aws_hosts_keep is false: removing the instances" in told
    assert NOTHING_LEFT in told
    assert left(cloud) == before


WITHOUT_TIMER = CONSOLE.partition("\n")[2].format(key=HOST_KEY)


@pytest.mark.parametrize(
    ("console", "ends", "words"),
    [
        (WITHOUT_TIMER, None, "it did not say on its console when it terminates itself"),
        ("login:", None, "it showed no SSH host keys on its console within 0 s"),
        (
            "",
            ("Client.InternalError", "Client.InternalError: Client error on launch"),
            "it is terminated (Client.InternalError: Client error on launch). Most often the "
            "account encrypts disks with a KMS key of its own",
        ),
    ],
)
def test_an_instance_of_no_use_is_known_by_its_console_or_its_end(
    cloud: Cloud, console: str, ends: tuple[str, str] | None, words: str
) -> None:
    cloud.console = lambda name: console
    cloud.ends = ends
    asking = cloud.client()
    (one,) = asking.run_instances(ImageId="ami-00000004", MinCount=1, MaxCount=1)["Instances"]
    found = ec2_queries.consoles(asking, [one["InstanceId"]], 0)
    assert found["hosts"] == {}
    assert words in found["lost"][one["InstanceId"]]


def test_an_instance_of_no_use_is_terminated_and_made_again_of_the_others_image(
    cloud: Cloud, play: Play
) -> None:
    first: list[str] = []

    def console(name: str) -> str:
        """What the first that is asked for shows has no timer."""
        first.append(name)
        return WITHOUT_TIMER if name == first[0] else CONSOLE.format(key=HOST_KEY)

    cloud.console = console
    refused = play(*MAKE, "-e", "aws_hosts_auto_approve=true")
    assert refused.returncode != 0
    told = " ".join(refused.stdout.split())
    assert f"({first[0]}): it did not say on its console when it terminates itself" in told
    assert "The instance was terminated. Run the same command again" in told
    (other,) = instances(cloud)
    assert other["InstanceId"] != first[0]

    cloud.publish("ami-00000007", "136693071363", "20261120-2200", "amd64")
    cloud.console = lambda name: CONSOLE.format(key=HOST_KEY)
    again = play(*MAKE, "-e", "aws_hosts_auto_approve=true")
    assert again.returncode == 0, again.stdout
    assert [one["ImageId"] for one in instances(cloud)] == ["ami-00000004"] * 2
    assert cloud.called("RunInstances")[-1]["MinCount"] == "1"


def test_a_run_goes_on_with_its_image(cloud: Cloud, play: Play, tmp_path: Path) -> None:
    """A newer one was published; the run's and the user's own count before it."""
    cloud.publish("ami-00000006", "136693071363", "20261110-2200", "amd64")
    cloud.publish("ami-00000007", "136693071363", "20261120-2200", "amd64")
    measured = {"instance_type": "c7i.2xlarge", "image": "ami-00000004"}
    (tmp_path / "plan.json").write_text(json.dumps({"hosts": {"server": measured}}))
    run = {"preflight_plan": {"run_dir": str(tmp_path)}}
    pin = {"aws_hosts_image_id": "ami-00000006"}
    *images, gone = checked(
        play, run, {**run, **pin}, {}, {**run, "aws_hosts_image_id": "ami-0000ffff"}
    )
    assert images == [f"allowed, of ami-0000000{number}" for number in (4, 6, 7)]
    assert (
        "us-east-1 has no image ami-0000ffff for x86_64 with ENA. Name another with "
        "-e aws_hosts_image_id="
    ) in gone
    assert cloud.calls == []


def test_the_policy_confines_changes_to_what_has_the_tag(cloud: Cloud) -> None:
    ec2, stranger = cloud.client("lab"), cloud.client()
    mine = {"ResourceType": "vpc", "Tags": [{"Key": "loadlab", "Value": "loadlab"}]}
    own = ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=[mine])["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[own], Tags=[{"Key": "note", "Value": "x"}])
    other = stranger.create_vpc(CidrBlock="10.2.0.0/16")["Vpc"]["VpcId"]
    (made,) = stranger.run_instances(ImageId="ami-00000004", MinCount=1, MaxCount=1)["Instances"]
    name = made["InstanceId"]
    subnet = {**mine, "ResourceType": "subnet"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("delete_vpc", {"VpcId": other}),
        ("create_vpc", {"CidrBlock": "10.3.0.0/16"}),
        ("create_tags", {"Resources": [other], "Tags": mine["Tags"]}),
        (
            "create_subnet",
            {"VpcId": other, "CidrBlock": "10.2.0.0/24", "TagSpecifications": [subnet]},
        ),
        ("terminate_instances", {"InstanceIds": [name]}),
        ("stop_instances", {"InstanceIds": [name]}),
        ("get_console_output", {"InstanceId": name}),
    ]
    for call, words in calls:
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            getattr(ec2, call)(**words)
    ec2.delete_vpc(VpcId=own)


def test_what_cannot_be_is_refused_before_anything_is_made(cloud: Cloud, play: Play) -> None:
    """One message with its remedy each."""
    cloud.vcpus = 16
    foreign = "c7g.large" if platform.machine() == "x86_64" else "c7i.large"
    refusals: list[tuple[dict[str, Any], list[str]]] = [
        (
            {"aws_hosts_server_type": "t3.large"},
            [
                "t3.large cannot be in a cluster placement group",
                "t3.large slows down when its CPU credits are spent",
            ],
        ),
        ({"aws_hosts_client_type": "c9z.huge"}, ["The instance type is not known in us-east-1"]),
        ({"aws_hosts_max_lifetime": 0}, ["aws_hosts_max_lifetime: 0 must be 0.25 to 168 hours"]),
        (
            {"aws_hosts_controller": "0.0.0.0/0"},
            ["aws_hosts_controller: '0.0.0.0/0' lets in 4294967296 addresses"],
        ),
        (
            {"aws_hosts_load_seconds": 12600},
            [
                "The run takes up to about 5.93 h: 3.5 h of load, the other stages, and time to "
                "repeat void measurements. The instances terminate themselves in 4.0 h. Give them "
                "longer"
            ],
        ),
        (
            {"preflight_plan": {"generators": ["wrk2"]}},
            ["The generator wrk2 is in no package of debian-13", "-e wrk2_binary="],
        ),
        (
            {"aws_hosts_server_type": "c7i.8xlarge"},
            [
                "c7i.8xlarge, c7i.2xlarge need 20 vCPUs, and the account's quota of on-demand "
                "standard instances in us-east-1 is 16, of which 0 are in use"
            ],
        ),
        (
            {"aws_hosts_budget_usd": 5, "aws_hosts_client_type": "m7i.xlarge"},
            ["aws_hosts_budget_usd: 5 USD cannot be kept, as the price is not known"],
        ),
        (
            {"aws_hosts_budget_usd": 1, "aws_hosts_load_seconds": 3600},
            ["The instances terminate themselves in 1.37 h", "-e aws_hosts_budget_usd=<USD>"],
        ),
        (
            {"aws_hosts_tags": {"loadlab": "x"}},
            ["aws_hosts_tags: {'loadlab': 'x'} must be a mapping whose keys are not Name"],
        ),
        (
            {"aws_hosts_client_type": "c7g.large"},
            [
                "us-east-1 has no image 'debian-13-arm64-*' of the owner 136693071363 for arm64 "
                "with ENA"
            ],
        ),
        (
            {"aws_hosts_client_type": foreign, "preflight_plan": {"generators": ["oha"]}},
            ["and the generator oha is made here for"],
        ),
        (
            {"aws_hosts_zone": "us-east-1z"},
            ["aws_hosts_zone: 'us-east-1z' is no availability zone that has c7i.2xlarge"],
        ),
    ]
    told = checked(play, *(asked for asked, _ in refusals))
    for answer, (asked, wanted) in zip(told, refusals, strict=True):
        for words in wanted:
            assert words in answer, asked
    assert cloud.calls == []


@pytest.mark.parametrize(
    ("region", "faults", "words"),
    [
        (REGION, {"*": "RequestExpired"}, "The credentials for AWS have expired"),
        (REGION, {"CreateVpc": "VpcLimitExceeded"}, "The account has as many VPCs in us-east-1"),
        ("eu-moon-1", {}, "AWS_REGION: 'eu-moon-1' is not a region of EC2. There are: af-south-1"),
    ],
)
def test_an_error_of_ec2_has_a_remedy(
    cloud: Cloud,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    region: str,
    faults: dict[str, str],
    words: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cloud.faults = faults
    action = ec2_network.ActionModule.__new__(ec2_network.ActionModule)
    with pytest.raises(ValueError, match=words):
        action.act(
            {
                "region": region,
                "name": "loadlab-loadlab",
                "tags": {"loadlab": "loadlab"},
                "cidr": "10.78.0.0/24",
                "public_key": HOST_KEY,
                "sources": ["203.0.113.7/32"],
            }
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
            ["There are no credentials for AWS", "AWS_PROFILE"],
        ),
        # Without a terminal nobody can answer.
        ({}, ["about 0.73 USD an hour", "give -e aws_hosts_auto_approve=true", "Nothing was made"]),
    ],
)
def test_refuses(cloud: Cloud, play: Play, changes: dict[str, str], words: list[str]) -> None:
    refused = play(*MAKE, **changes)
    assert refused.returncode != 0
    output = " ".join(refused.stdout.split())
    for word in words:
        assert word in output, refused.stdout
    assert cloud.calls == []


def test_check_without_an_account_shows_plan_instances_and_price(
    environment: dict[str, str],
) -> None:
    """The commands of docs/aws.md, on a free port."""
    page = (ROOT / "docs/aws.md").read_text()
    (section,) = re.findall("## Try it without an account\n(.*?)\n## ", page, re.DOTALL)
    serve, *rest = re.findall("^    (.*)$", section, re.MULTILINE)
    exports = [one.removeprefix("export ") for one in rest if one.startswith("export ")]
    (check,) = [one for one in rest if not one.startswith("export ")]
    *words, port = serve.split()
    assert words == ["python", "-m", "tests.aws.cloud"]
    with subprocess.Popen(
        [sys.executable, *words[1:], "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            url = server.stdout.readline().split()[-1]
            given = dict(pair.split("=", 1) for line in exports for pair in line.split())
            assert given["AWS_ENDPOINT_URL"] == f"http://127.0.0.1:{port}"
            bare = {name: one for name, one in environment.items() if not name.startswith("AWS_")}
            checked = subprocess.run(
                # With a generator that needs no build.
                [
                    *check.split(),
                    *("-e", "generator=wrk", "-e", f"run_id=check-{secrets.token_hex(4)}"),
                ],
                cwd=ROOT,
                env={**bare, **given, "AWS_ENDPOINT_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
            )
        finally:
            server.terminate()
    assert checked.returncode == 0, checked.stdout
    told = " ".join(checked.stdout.split())
    for line in (
        "measurements of aiohttp at",
        "USD on EC2 (list price)",
        "server: c7i.2xlarge, debian-13, on demand, default tenancy",
        "image ami-00000004",
        "the run takes up to about",
        "about 0.73 USD an hour",
        "no more than about 2.91 USD",
        "list prices of 2026-11-21",
    ):
        assert line in told, checked.stdout


def test_without_instances_a_stage_says_how_to_make_them(play: Play) -> None:
    stage = play("playbooks/untune.yml")
    assert stage.returncode != 0
    assert "there is no instance of the lab for this host" in " ".join(stage.stdout.split())


def test_the_user_data_are_what_cloud_init_reads() -> None:
    """A header and a mapping; the role's templates are text until cloud-init reads them."""
    text = (ROOT / "roles/aws_hosts/templates/user-data.yml.j2").read_text()
    assert text.startswith("#cloud-config\n")
    plain = text.replace("{{ ansible_managed | comment }}", "").replace(
        "{{ __aws_hosts_lifetime_s }}", "60"
    )
    document = yaml.safe_load(plain)
    assert set(document) == {
        "bootcmd",
        "package_update",
        "runcmd",
        "ssh_deletekeys",
        "ssh_genkeytypes",
        "ssh",
    }
