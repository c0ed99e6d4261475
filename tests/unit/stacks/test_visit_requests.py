"""The visits that verify a session's requests: the commands of a client against a real server."""

import http.server
import itertools
import json
import subprocess
import threading
from collections.abc import Iterator

import pytest

from loadlab.model import SessionStep
from loadlab.stacks import take_value, visit_requests
from loadlab.stacks.contract import Answer, Contract, ContractError, cut

MARK = "=== end ==="
CONTRACTS = {
    "login": Contract(path="/login", method="POST", body="user=anna", pattern="token"),
    "cart": Contract(
        path="/cart/{token}?all", headers={"X-Token": "{token}", "X-Note": "{note}"}, status=200
    ),
    "home": Contract(path="/", json={"hello": "it's"}),
}
SESSION = [
    SessionStep(request="login", take={"token": "$.user.token", "note": "X-Note"}),
    SessionStep(request="cart", think_s=2),
]


@pytest.fixture
def server() -> Iterator[str]:
    count = itertools.count()

    class Shop(http.server.BaseHTTPRequestHandler):
        def say(self, status: int, content: object, **fields: str) -> None:
            body = json.dumps(content, separators=(",", ":")).encode()
            self.send_response(status)
            for name, text in fields.items():
                self.send_header(name.replace("_", "-"), text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            number = next(count)
            self.say(
                200,
                {"user": {"token": f"t-{number}"}},
                Set_Cookie=f"sid={number}; Path=/; HttpOnly",
                X_Note=f'a "{number}" $HOME',
            )

        def do_GET(self) -> None:
            if self.path == "/":
                return self.say(200, {"hello": "it's"})
            token = self.headers.get("X-Token", "")
            number = token[-1:]
            right = (
                self.path == f"/cart/{token}?all"
                and self.headers["X-Note"] == f'a "{number}" $HOME'
                and self.headers["Cookie"] == f"sid={number}"
            )
            return self.say(200 if right else 401, ["pear"])

        def log_message(self, format: str, *args: object) -> None:
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    thread.join()
    serving.server_close()


def verified(url: str, session: list[SessionStep]) -> dict[str, Answer]:
    commands = visit_requests.requests(CONTRACTS, dict.fromkeys(CONTRACTS, url), MARK, session)
    script = "exec 3>&1\n" + "; ".join(request.command for request in commands)
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    text = done.stdout.decode("utf-8", "surrogateescape")
    answers = cut(text, MARK, visit_requests.asked(CONTRACTS, session))
    return visit_requests.verified(CONTRACTS, answers, session, {}, {})


def test_two_visits_carry_values_and_cookies_on(server: str) -> None:
    answers = verified(server, SESSION)
    assert {name: answer.status for name, answer in answers.items()} == dict.fromkeys(
        CONTRACTS, 200
    )
    # Each login has another token, of any length; both visits found the same in the cart.
    assert (answers["login"].sha256, answers["login"].body_bytes) == (None, None)
    assert answers["cart"].body_bytes == len('["pear"]')


def test_an_answer_without_its_value_is_refused(server: str) -> None:
    take = {"token": "$.user.token", "note": "$.user.note"}
    session = [SessionStep(request="login", take=take), SESSION[1]]
    with pytest.raises(ContractError, match=r"/login answered nothing at \$.user.note, which the"):
        verified(server, session)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("$.a[1].b", "x"),
        ("$.n", "12345678901234567890"),
        ("$.n[0]", ""),
        ("$.a[0]", "-1.50"),
        ("$.yes", "true"),
        ("$.none", ""),
        ("$.a", ""),
        ("$.a[7]", ""),
        ("$.a.b", ""),
        ("$.c", ""),
        ("location", "/here"),
        ("Other", ""),
    ],
)
def test_a_value_is_at_its_place(place: str, value: str) -> None:
    body = b'{"a": [-1.50, {"b": "x"}], "n": 12345678901234567890, "yes": true, "none": null}'
    answer = b"HTTP/1.1 200 OK\r\nLocation: /here\r\n\r\n" + body
    assert take_value.value(answer, place) == value
