"""Signatures with real ssh-keygen, keys and agents."""

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlab.bundle import signature
from loadlab.bundle.signature import SignatureError, Signer

CONTENT = b"0  plan.json\n"
PASSPHRASE = "wise words"


@pytest.fixture(autouse=True)
def _no_agent_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def keygen(*words: str | Path) -> str:
    command = ["ssh-keygen", "-q", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def new(path: Path, passphrase: str = "", kind: str = "ed25519") -> Path:
    keygen("-t", kind, "-N", passphrase, "-C", "maker@example.com", "-f", path)
    return path


def public(key: Path) -> str:
    return Path(f"{key}.pub").read_text()


def fingerprint(key: Path) -> str:
    return keygen("-l", "-f", key).split()[1]


def sign(key: Path) -> bytes:
    signed = signature.sign(CONTENT, key, None)
    assert signed.fingerprint == fingerprint(key)
    return signed.signature


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_signature_names_its_key(tmp_path: Path, kind: str) -> None:
    key = new(tmp_path / "key", kind=kind)
    signature.refuse_key(key)
    assert signature.check(CONTENT, sign(key)) == Signer(fingerprint(key), None)


def test_any_change_of_content_or_signature_is_refused(tmp_path: Path) -> None:
    signed = sign(new(tmp_path / "key"))
    middle = len(signed) // 2
    other = b"A" if signed[middle : middle + 1] != b"A" else b"B"
    for content, changed in (
        (CONTENT + b"\n", signed),
        (CONTENT, signed[:middle] + other + signed[middle + 1 :]),
        (CONTENT, signed[:100]),
        (CONTENT, b"\x1b[2J"),
    ):
        with pytest.raises(
            SignatureError, match=r"^has a signature that is not of its files: "
        ) as no:
            signature.check(content, changed)
        assert str(no.value).isprintable()


def test_a_signature_for_another_purpose_does_not_count(tmp_path: Path) -> None:
    key = new(tmp_path / "key")
    (tmp_path / "sums").write_bytes(CONTENT)
    keygen("-Y", "sign", "-n", "git", "-f", key, tmp_path / "sums")
    with pytest.raises(SignatureError, match="namespace"):
        signature.check(CONTENT, (tmp_path / "sums.sig").read_bytes())


def test_the_list_of_signers_gives_the_name(tmp_path: Path) -> None:
    key, other = new(tmp_path / "key"), new(tmp_path / "other")
    signed, its = sign(key), fingerprint(key)
    listed = tmp_path / "signers"
    for text, name in (
        (f"maker@example.com {public(key)}", "maker@example.com"),
        (f'a@b,c@d namespaces="loadlab" {public(key)}', "a@b"),
        (f"a@b {public(other)}c@d {public(key)}", "c@d"),
        (f"a@b {public(other)}", None),
        (f'a@b namespaces="git" {public(key)}', None),
        (f'a@b valid-before="20200101" {public(key)}', None),
        ("no list of signers\n", None),
        ("", None),
    ):
        listed.write_text(text)
        assert signature.check(CONTENT, signed, listed) == Signer(its, name), text


def test_what_cannot_sign_is_refused_with_the_remedy(tmp_path: Path) -> None:
    key = new(tmp_path / "key")
    (tmp_path / "text").write_text("a diary\n")
    (tmp_path / "alone.pub").write_text(public(key))
    usual = "Give your private key, for example --sign ~/.ssh/id_ed25519. Nothing was written."
    agent = "is a public key, and no ssh-agent has its private key."
    for name, words in (
        ("none", f"is not a file. {usual}"),
        (".", f"is not a file. {usual}"),
        ("text", f"is not a private key of SSH; ssh-keygen -t ed25519 makes one. {usual}"),
        ("key.pub", f"{agent} Give --sign {key}, or add it to an agent with ssh-add. Nothing"),
        ("alone.pub", f"{agent} Give that, or add it to an agent with ssh-add. Nothing was"),
    ):
        with pytest.raises(SignatureError) as refusal:
            signature.refuse_key(tmp_path / name)
        assert str(refusal.value).startswith(f"sign: '{tmp_path / name}' {words}")


def test_a_key_that_others_may_read_does_not_sign(tmp_path: Path) -> None:
    key = new(tmp_path / "key")
    key.chmod(0o644)
    with pytest.raises(SignatureError, match=r"did not sign: No private key found.* Nothing was"):
        sign(key)


def test_a_passphrase_without_terminal_or_agent_is_told(tmp_path: Path) -> None:
    key = new(tmp_path / "key", PASSPHRASE)
    signature.refuse_key(key)
    with pytest.raises(SignatureError) as refusal:
        sign(key)
    assert str(refusal.value) == (
        f"sign: '{key}' has a passphrase, and there is no terminal to ask for it. Add the key to "
        "an agent (eval $(ssh-agent); ssh-add) and try again. Nothing was written."
    )


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    yield
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.mark.usefixtures("agent")
def test_an_agent_signs_without_the_passphrase(tmp_path: Path) -> None:
    key = new(tmp_path / "key")
    subprocess.run(["ssh-add", "-q", key], check=True)
    keygen("-p", "-N", PASSPHRASE, "-f", key)
    assert signature.check(CONTENT, sign(key)).fingerprint == fingerprint(key)
    # The private key is elsewhere, as with an agent that was forwarded.
    its = Path(f"{key}.pub")
    key.unlink()
    signature.refuse_key(its)
    assert signature.check(CONTENT, sign(its)).fingerprint == fingerprint(its)


ASKING = """
import sys
from pathlib import Path
from loadlab.bundle import signature
signed = signature.sign(b"content", Path(sys.argv[1]), lambda line: print(line, flush=True))
print(signature.check(b"content", signed.signature).fingerprint)
"""


@pytest.mark.parametrize("typed", [PASSPHRASE, "another one"])
def test_the_passphrase_is_asked_for_on_the_terminal(tmp_path: Path, typed: str) -> None:
    key = new(tmp_path / "key", PASSPHRASE)
    process, user = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", ASKING, str(key)])
    seen = b""
    while not seen.endswith(b": "):
        seen += os.read(user, 1000)
    announced = f"ssh-keygen asks for the passphrase of {key}; type it, then Enter."
    assert seen.decode() == f"{announced}\r\nEnter passphrase: "
    os.write(user, typed.encode() + b"\n")
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the terminal of a process that has ended
        while part := os.read(user, 1000):
            shown += part
    os.close(user)
    _, status = os.waitpid(process, 0)
    answer = "".join(shown.decode().split("\r\n"))
    assert typed not in answer
    if typed == PASSPHRASE:
        assert (answer, status) == (fingerprint(key), 0)
    else:
        assert f"sign: '{key}' did not sign: the passphrase was wrong. Nothing was" in answer
