"""The last lines of a playbook that failed."""

import pytest
from msgspec import structs

from loadlab.report.words import failures
from loadlab.report.words.failures import BegunRun, Failure

# What pip says of a version that it has no wheel of, and what pip, apt, npm and Go say of servers.
NO_WHEEL = (
    "stdout: Looking in indexes: https://user:secret@index.example.org/simple\n"
    ":stderr: ERROR: Could not find a version that satisfies the requirement aiohttp==3.9.5 "
    "(from versions: 3.10.6, 3.14.3, 3.14.4, 3.14.5)\n"
    "ERROR: No matching distribution found for aiohttp==3.9.5\n"
)
PIP = (
    "stdout: Looking in indexes: https://user:secret@index.example.org/simple\n"
    ":stderr:   WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, "
    "status=None)) after connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: "
    "CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate "
    "(_ssl.c:1000)'))': /simple/gunicorn/\nERROR: No matching distribution found for gunicorn\n"
)
APT = (
    "Failed to update apt cache after 5 retries: W:Failed to fetch http://deb.example.org/debian/"
    "dists/trixie/InRelease  Temporary failure resolving 'deb.example.org'"
)
NPM = (
    "npm ERR! code ECONNREFUSED\nnpm ERR! network request to https://npm.example.org:4873/express "
    "failed, reason: connect ECONNREFUSED 192.0.2.1:4873"
)
NPM_LACKS = (
    "npm error code E404\nnpm error 404 Not Found - GET https://npm.example.org/pg - Not found\n"
    "npm error A complete log of this run can be found in: /root/.npm/_logs/debug-0.log"
)
GO_LACKS = "go: x@v1.2.0: reading https://proxy.example.org/x/@v/v1.2.0.zip: 403 Forbidden"
GO = 'go: x@v1: Get "https://proxy.example.org/x/@v/v1.mod": dial tcp 192.0.2.1:443: i/o timeout'


@pytest.mark.parametrize(
    ("said", "words", "remedy"),
    [
        (PIP, "does not trust the certificate of index.example.org", "Install your CA there"),
        (APT, "cannot resolve the name deb.example.org", "Mend its DNS"),
        (NPM, "npm.example.org:4873 refuses its connection", "Set the proxy or the mirror"),
        (NPM_LACKS, "npm.example.org does not serve it", "See the proxy or the mirror"),
        (GO_LACKS, "proxy.example.org does not serve it", "See the proxy or the mirror"),
        (GO, "does not reach proxy.example.org", "Open the way there"),
    ],
)
def test_a_known_cause_is_named_with_its_remedy(said: str, words: str, remedy: str) -> None:
    told = failures.reason(Failure(host="server", task="Install the locked packages", text=said))
    assert told.startswith("Install the locked packages: ")
    assert words in told
    assert remedy in told
    assert "-e hosts_online=false" in told
    assert "secret" not in told


def test_a_package_without_a_wheel_is_named_with_the_python_and_the_versions() -> None:
    lacking = Failure(host="server", task="Install the locked packages", text=NO_WHEEL)
    assert failures.reason(lacking, "Python 3.13.5") == (
        "Install the locked packages: the package index has no wheel of aiohttp==3.9.5 for Python "
        "3.13.5. Require a version that has one (the newest that have one: 3.14.3, 3.14.4, "
        "3.14.5), or take another Python with -e python=, and run the command again."
    )
    # The lab's own packages have no -e python=, and an index may have no wheel at all.
    none = NO_WHEEL.replace("3.10.6, 3.14.3, 3.14.4, 3.14.5", "none")
    assert failures.reason(structs.replace(lacking, text=none)) == (
        "Install the locked packages: the package index has no wheel of aiohttp==3.9.5 for the "
        "Python there. Require a version that has one, and run the command again."
    )


def test_an_unknown_cause_is_the_end_of_what_was_said() -> None:
    # Without a server's name, it is no matter of packages.
    text = "one\ntwo\n\nthree\nconnection refused.\n"
    told = failures.reason(Failure(host="server", task="Ask PostgreSQL", text=text))
    assert told == f"Ask PostgreSQL: two three connection refused. {failures.AGAIN}"


def test_of_a_loop_the_item_that_failed_is_told() -> None:
    items = [{"msg": "fine"}, {"failed": True, "msg": "non-zero return code", "stderr": "broken\n"}]
    assert failures.said({"msg": "One or more items failed", "results": items}) == "broken"
    assert failures.said({"msg": "non-zero return code", "stderr": "", "stdout": "full"}) == "full"


def test_a_refusal_stays_as_it_is() -> None:
    task = {"name": "Refuse", "action": "ansible.builtin.fail"}
    found = failures.failure("server", task, {"msg": "It does not start.\nIt says:\n1\n2\n3\n4"})
    assert failures.last_lines([found], None) == [f"server: {found.text}"]


def test_after_a_loss_the_last_line_says_what_is_kept_and_how_to_go_on() -> None:
    text = "Task failed: Failed to connect to the host via ssh: root@h: Permission denied."
    lost = Failure(host="client", task="Install wrk", text=text, lost=True)
    words = "client: unreachable over SSH (root@h: Permission denied) at the task 'Install wrk'. "
    same = "When it answers again, the same command goes on"
    resume = "ansible-playbook lab.yml -e run_id=a-run"
    assert failures.last_lines([lost], None) == [words + same]
    begun = BegunRun(measured=False, resume=resume)
    assert failures.last_lines([lost], begun) == [f"{words}Nothing was measured. {same}"]
    measured = BegunRun(measured=True, resume=resume)
    kept = "What was measured is kept."
    assert failures.last_lines([lost], measured) == [
        f"{words}{kept} When it answers again, go on with {resume}"
    ]
    assert failures.interrupted("", measured) == f"Interrupted. {kept} Go on with {resume}"
    # Who waits for a virtual machine that lost its power waits for ever.
    of_lab = BegunRun(measured=True, resume=resume, makes_hosts=True)
    assert failures.last_lines([lost], of_lab) == [
        f"{words}{kept} This brings it back where it is gone, and goes on: {resume}"
    ]
    of_lab = BegunRun(measured=False, resume=resume, makes_hosts=True)
    assert failures.last_lines([lost], of_lab) == [
        f"{words}Nothing was measured. lab.yml brings it back where it is gone; then the same "
        "command goes on"
    ]
    # A stage alone.
    stage = BegunRun(measured=True, resume="")
    assert failures.last_lines([lost], stage) == [f"{words}{kept} {same}"]
    assert failures.interrupted(" at the task 'Wait'", stage) == (
        f"Interrupted at the task 'Wait'. {kept} Run the same command again."
    )
