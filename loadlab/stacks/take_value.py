"""Take a value from an HTTP answer: imported here, and run by itself on a client's own Python.

As a program it prints the value at a place in the answer in a file, or nothing where there is none.
"""

import json
import re
import sys
from pathlib import Path

_KEY = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")


def value(answer: bytes, place: str) -> str:
    """Return the value at a JSON path of the body, such as $.items[0].id, or of a header.

    ``answer``: with its head. Empty where it has none, and for null, a list and an object.
    """
    head, _, body = answer.partition(b"\r\n\r\n")
    if not place.startswith("$"):
        fields = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
        texts = [text.strip() for name, _, text in fields if name.lower() == place.lower()]
        return texts[0] if texts else ""
    try:
        # Numbers keep their digits.
        node = json.loads(body, parse_int=str, parse_float=str)
        for key, entry in _KEY.findall(place):
            # A text has letters at these places, and no values.
            if isinstance(node, str):
                return ""
            node = node[key] if key else node[int(entry)]
    except (ValueError, LookupError, TypeError):
        return ""
    if isinstance(node, bool):
        return str(node).lower()
    return node if isinstance(node, str) else ""


if __name__ == "__main__":
    sys.stdout.write(value(Path(sys.argv[1]).read_bytes(), sys.argv[2]))
