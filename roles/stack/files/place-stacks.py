"""Puts kept stacks at their places, and removes what is at any other place. It starts nothing.

Argument: JSON of Arrangements in loadlab/stacks/places.py.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def unpack(place: dict[str, Any]) -> None:
    """Unpack the kept files into the place's folder, unless it has them."""
    folder, archive = Path(place["folder"]), Path(place["archive"])
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    mark = folder / "unpacked"
    if mark.exists() and mark.read_text() == digest:
        return
    remove(folder)
    folder.mkdir(parents=True)
    output("tar", "-C", str(folder), "--extract", "--preserve-permissions", f"--file={archive}")
    for path in place["folders"]:
        Path(path).mkdir(parents=True)
    mark.write_text(digest)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


def write(file: dict[str, Any], place: dict[str, Any]) -> None:
    text = Path(place["folder"] + file["source"]).read_text() + file["added"]
    if file["fragment"]:
        show = ("systemctl", "show", "--property=FragmentPath", "--value", file["fragment"])
        text = Path(output(*show).strip()).read_text() + text
    for change in file["substitutions"]:
        new = change["replacement"]
        text, count = re.subn(rf"{re.escape(change['text'])}\b", lambda _, new=new: new, text)
        if change["required"] and not count:
            sys.exit(
                f"place {place['place']}: {file['source']} of the stack does not have "
                f"'{change['text']}', so the place would serve another one's answers. "
                "loadlab/stacks/places.py has what a place replaces."
            )
    Path(file["target"]).write_text(text)


def refuse_taken_ports(places: list[dict[str, Any]]) -> None:
    of_port = {port: place["place"] for place in places for port in place["ports"]}
    for line in output("ss", "-Hltnp").splitlines():
        _, _, _, local, _, *process = line.split()
        place = of_port.get(int(local.rpartition(":")[2]))
        if place:
            sys.exit(
                f"place {place}: another process listens on {local}, a port of this place: "
                f"{' '.join(process)}. Stop it and run the same command again."
            )


def main() -> None:
    asked = json.loads(sys.argv[1])
    places, folder, units = asked["places"], Path(asked["folder"]), Path(asked["units"])
    there = [*units.parent.glob(units.name), *folder.glob("*")]
    if not (places or there):
        return
    os.umask(0o022)
    output("systemctl", "stop", units.name, *(["loadlab-app*.service"] if places else []))
    refuse_taken_ports(places)
    wanted = {place["folder"] for place in places}
    for place in places:
        unpack(place)
        for file in place["files"]:
            write(file, place)
            wanted.add(file["target"])
    for path in there:
        if str(path) not in wanted:
            remove(path)
    if not places:
        remove(folder)
    output("systemctl", "daemon-reload")
    # What did not end in time would stay as failed.
    output("systemctl", "reset-failed", units.name)
    print("places changed")


if __name__ == "__main__":
    main()
