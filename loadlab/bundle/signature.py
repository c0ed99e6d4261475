"""Sign the list of a bundle's sums with an SSH key, and name the signer, both by ssh-keygen."""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from loadlab.run.catalog import path_of
from loadlab.run.errors import LabError
from loadlab.run.formatting import one_line

# A signature for another purpose, of git for example, is of another namespace and does not count.
NAMESPACE = "loadlab"

_FINGERPRINT = re.compile(r"key (SHA256:[A-Za-z0-9+/]{43})$", re.MULTILINE)
_PUBLIC = re.compile(rb"(?:sk-)?(?:ssh|ecdsa)-\S+ (AAAA\S+)")
_PRIVATE = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----\s")


class SignatureError(LabError):
    """A key cannot sign, or a signature is not one of its content; the text says why."""


class Signed(NamedTuple):
    """A signature, and the fingerprint of the key that made it."""

    signature: bytes
    fingerprint: str


@dataclass(frozen=True)
class Signer:
    """Who signed: the fingerprint of the key, and its name in the list of signers, or None."""

    fingerprint: str
    name: str | None


def refuse_key(key: Path) -> None:
    """Raise SignatureError where a file cannot sign."""
    instead = "Give your private key, for example --sign ~/.ssh/id_ed25519. Nothing was written."
    if not key.is_file():
        raise SignatureError(f"sign: '{key}' is not a file. {instead}")
    try:
        with key.open("rb") as file:
            begin = file.read(1 << 16)
    except OSError as problem:
        raise SignatureError(
            f"sign: '{key}' cannot be read: {problem.strerror}. {instead}"
        ) from None
    public = _PUBLIC.match(begin)
    # Without an agent ssh-add lists none.
    if public and public[1] not in re.findall(rb"AAAA\S+", _run(["ssh-add", "-L"])[1].encode()):
        private = key.with_suffix("") if key.suffix == ".pub" else None
        instead = f"Give --sign {private}" if private and private.is_file() else "Give that"
        raise SignatureError(
            f"sign: '{key}' is a public key, and no ssh-agent has its private key. {instead}, or "
            "add it to an agent with ssh-add. Nothing was written."
        )
    if not public and not _PRIVATE.match(begin):
        raise SignatureError(
            f"sign: '{key}' is not a private key of SSH; ssh-keygen -t ed25519 makes one. {instead}"
        )


def refuse_signers(signers: Path) -> None:
    """Raise SignatureError where the list of signers is not a file."""
    if not path_of(Path(), "signers", str(signers)).is_file():
        raise SignatureError(
            f"signers: '{signers}' is not a file. Give a file with a line for each signer that you "
            "trust: a name and the public key (ALLOWED SIGNERS in the manual of ssh-keygen)."
        )


def sign(content: bytes, key: Path, announce: Callable[[str], None] | None) -> Signed:
    """Return the signature of ``content`` by a key, or by the agent that has it.

    ``announce``: called with a line for the user before ssh-keygen asks for a passphrase on the
    terminal; None where there is no terminal. Raises SignatureError where it does not sign.
    """
    with tempfile.TemporaryDirectory(prefix="loadlab-sign-") as scratch:
        signed = Path(scratch) / "SHA256SUMS"
        signed.write_bytes(content)
        words = ["-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()), str(signed)]
        file = Path(f"{signed}.sig")
        obstacle = _last(_keygen(words)[1])
        if not file.exists() and "passphrase" in obstacle:
            if announce is None:
                raise SignatureError(
                    f"sign: '{key}' has a passphrase, and there is no terminal to ask for it. Add "
                    "the key to an agent (eval $(ssh-agent); ssh-add) and try again. Nothing was "
                    "written."
                )
            announce(f"ssh-keygen asks for the passphrase of {key}; type it, then Enter.")
            subprocess.run(["ssh-keygen", *words], capture_output=True, check=False)
            obstacle = "the passphrase was wrong"
        if not file.exists():
            raise SignatureError(f"sign: '{key}' did not sign: {obstacle}. Nothing was written.")
        signature = file.read_bytes()
    return Signed(signature, check(content, signature).fingerprint)


def check(content: bytes, signature: bytes, signers: Path | None = None) -> Signer:
    """Return who signed ``content``.

    ``signers``: a list of signers in ssh-keygen's format. Raises SignatureError where the
    signature is not one of this content.
    """
    with tempfile.TemporaryDirectory(prefix="loadlab-check-") as scratch:
        file = Path(scratch) / "signature"
        file.write_bytes(signature)
        about = ["-n", NAMESPACE, "-s", str(file)]
        code, output = _keygen(["-Y", "check-novalidate", *about], content)
        fingerprint = _FINGERPRINT.search(output)
        if code != 0 or fingerprint is None:
            raise SignatureError(
                "has a signature that is not of its files: they were replaced after it was signed, "
                f"or the signature was ({_last(output)})"
            )
        if signers is None:
            return Signer(fingerprint[1], None)
        listed = ["-f", str(signers)]
        for name in _keygen(["-Y", "find-principals", *listed, "-s", str(file)])[1].splitlines():
            if _keygen(["-Y", "verify", *listed, "-I", name, *about], content)[0] == 0:
                return Signer(fingerprint[1], name)
        return Signer(fingerprint[1], None)


def _keygen(words: list[str], content: bytes = b"") -> tuple[int, str]:
    return _run(["ssh-keygen", *words], content)


def _run(words: list[str], content: bytes = b"") -> tuple[int, str]:
    """Run a program without a terminal; return its exit code and what it printed.

    Raises SignatureError where it is not installed.
    """
    try:
        done = subprocess.run(
            words,
            input=content,
            capture_output=True,
            check=False,
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"},
            # Else it would ask for a passphrase on the terminal whatever its standard input is.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise SignatureError(
            f"{words[0]} is not installed, and SSH signatures need it. Install openssh-client."
        ) from None
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def _last(output: str) -> str:
    """Return the last line that ssh-keygen printed."""
    return one_line((output.splitlines() or ["ssh-keygen printed nothing"])[-1], 200)
