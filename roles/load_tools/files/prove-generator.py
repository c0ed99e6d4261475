"""Runs the command of a load generator against a server on this host: prove-generator.py COMMAND...

{address} in a word of COMMAND becomes the address of the server. Prints as JSON exit_code, the
number of requests that were answered, and what the command said.
"""

import http.server
import json
import subprocess
import sys
import tempfile
import threading

ANSWER = b"ok"
# Characters of what the command said.
MOST = 2000


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answered = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)
        with Handler.lock:
            Handler.answered += 1

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main(command: list[str]) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [word.replace("{address}", address) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said = "".join(
        character
        for character in done.stdout.decode("utf-8", "replace")
        if character.isprintable() or character == "\n"
    )
    proof = {
        "exit_code": done.returncode,
        "answered": Handler.answered,
        "said": said.strip()[-MOST:],
    }
    print(json.dumps(proof))


if __name__ == "__main__":
    main(sys.argv[1:])
