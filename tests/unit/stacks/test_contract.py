import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from loadlab.run.catalog import load_yaml
from loadlab.stacks import book_text, contract
from loadlab.stacks.contract import Answer, Contract, ContractError
from loadlab.stacks.expected import Dataset

FILES = Path(__file__).parents[3] / "files"
WRITTEN: dict[str, Any] = load_yaml(FILES / "endpoints.yml")
CONTRACTS = contract.contracts(FILES.parent)
DATASET: dict[str, Any] = load_yaml(FILES / "dataset.yml")
INDEX = Contract(
    path="/index",
    status=200,
    content_type="application/json",
    json={"hello": "world", "ready": True, "n": 1},
)
BODY = b'{"hello":"world","ready":true,"n":1}'


def answer(
    body: bytes = BODY,
    status: str = "200 OK",
    media: str | None = "application/json",
    length: str | None = "right",
) -> bytes:
    """None leaves a header out."""
    lines = [f"HTTP/1.1 {status}", "Server: nginx"]
    lines += [] if media is None else [f"Content-Type: {media}"]
    lines += (
        [] if length is None else [f"Content-Length: {length.replace('right', str(len(body)))}"]
    )
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def refusal(given: bytes, seconds: float = 0.01, **changed: Any) -> str:
    with pytest.raises(ContractError) as problem:
        contract.check(replace(INDEX, **changed), given, seconds, {})
    return str(problem.value)


def test_a_right_answer_is_measured() -> None:
    given = answer(media="Application/JSON")
    assert contract.check(INDEX, given, 0.01, {}) == Answer(
        status=200,
        sha256=hashlib.sha256(BODY).hexdigest(),
        body_bytes=len(BODY),
        wire_bytes=len(given),
    )


def test_the_parts_of_an_answer() -> None:
    given = b"HTTP/2 204 \r\nX-Two:  a: b \r\nETAG:x\r\n\r\nbody\r\n\r\nmore"
    headers = {"x-two": "a: b", "etag": "x"}
    assert contract.split(given) == (204, headers, b"body\r\n\r\nmore")
    assert contract.split(b"HTTP/1.0 200\r\n\r\n") == (200, {}, b"")


DATA: Dataset = {
    "agents": [{"id": 7, "name": "x"}, {"id": 3, "name": "y"}],
    "login_status": [
        {"agent_id": 3, "status": "paused", "since": "2015-02-01T00:00:00"},
        {"agent_id": 7, "status": "on_call", "since": "2015-02-02T00:00:00"},
    ],
    "items": [{"id": 1, "name": "w", "rating_score": 4, "rating_count": 2}],
    "fortunes": [{"id": 1, "message": "b > a & é"}, {"id": 2, "message": "'<b>'+\"x\""}],
}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ({"json": {"b": [1, True, None], "a": "x y"}}, b'{"b":[1,true,null],"a":"x y"}'),
        # Joined by agent, in the agents' order.
        (
            {"json_from": "agents"},
            b'{"agents":['
            b'{"id":7,"name":"x","status":"on_call","since":"2015-02-02T00:00:00"},'
            b'{"id":3,"name":"y","status":"paused","since":"2015-02-01T00:00:00"}]}',
        ),
        ({"text": "Hello, \u00e9!"}, b"Hello, \xc3\xa9!"),
        ({"text": ["<table>", "<tr></tr>", "</table>"]}, b"<table><tr></tr></table>"),
        # Its rating in a mapping of its own.
        ({"json_from": "item"}, b'{"id":1,"name":"w","rating":{"score":4,"count":2}}'),
        ({"text_from": "book"}, book_text.text()),
    ],
)
def test_expected_body_of_each_kind_is_accepted(kind: Any, body: bytes) -> None:
    own = Contract(path="/x", status=200, content_type="application/json", **kind)
    assert contract.expected_body(own, DATA) == body
    assert contract.check(own, answer(body), 0.01, DATA).body_bytes == len(body)


HTML = "text/html; charset=utf-8"
FORTUNES = Contract(path="/fortunes", status=200, content_type=HTML, html_from="fortunes")
# By their messages, with the added one.
PAGE = (
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
    "<tr><th>id</th><th>message</th></tr>"
    "<tr><td>2</td><td>'&lt;b&gt;'+\"x\"</td></tr>"
    "<tr><td>0</td><td>Additional fortune added at request time.</td></tr>"
    "<tr><td>1</td><td>b &gt; a &amp; é</td></tr>"
    "</table></body></html>"
)


def page_answer(page: str) -> bytes:
    return answer(page.encode(), media=HTML)


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        ("'", "'"),
        # Jinja2, Django, Bottle, Go.
        ("'&lt;b&gt;'+\"x\"", "&#39;&lt;b&gt;&#39;+&#34;x&#34;"),
        ("'&lt;b&gt;'+\"x\"", "&#x27;&lt;b&gt;&#x27;+&quot;x&quot;"),
        ("'&lt;b&gt;'+\"x\"", "&#039;&lt;b&gt;&#039;+&quot;x&quot;"),
        ("'&lt;b&gt;'+\"x\"", "&#39;&#60;b&#62;&#39;&#43;&#34;x&#34;"),
    ],
)
def test_page_may_write_a_character_as_any_reference(written: str, otherwise: str) -> None:
    page = PAGE.replace(written, otherwise)
    found = contract.check(FORTUNES, page_answer(page), 0.01, DATA)
    # The answers of a load are compared with this one, to the byte.
    assert found.body_bytes == len(page.encode())
    assert found.sha256 == hashlib.sha256(page.encode()).hexdigest()


ROWS = PAGE.split("<tr>")


@pytest.mark.parametrize(
    "wrong",
    [
        PAGE.replace("&lt;b&gt;", "<b>"),  # not escaped
        PAGE.replace("&lt;b", "&amp;lt;b"),  # escaped twice
        PAGE.replace("&amp; é", "& é"),
        PAGE.replace("é", "?"),
        "<tr>".join([*ROWS[:3], *ROWS[4:]]),  # without the added row
        "<tr>".join([*ROWS[:2], ROWS[3], ROWS[2], *ROWS[4:]]),  # as the table has them
        PAGE + "\n",
    ],
)
def test_page_that_is_wrong_is_refused(wrong: str) -> None:
    assert wrong != PAGE
    with pytest.raises(ContractError, match="the contract says"):
        contract.check(FORTUNES, page_answer(wrong), 0.01, DATA)


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "301 Moved", "201 Created"])
def test_answer_with_another_status_is_refused(status: str) -> None:
    told = refusal(answer(status=status))
    assert told.startswith(f"/index answered status {status[:3]}, the contract says 200: ")
    assert "hello" in told


@pytest.mark.parametrize(
    ("media", "wanted"),
    [
        ("text/html", "application/json"),
        ("application/jsonx", "application/json"),
        # With a charset or without is as many bytes more or less on the wire.
        ("application/json; charset=utf-8", "application/json"),
        ("text/plain", "text/plain; charset=utf-8"),
        ("text/plain; charset=iso-8859-1", "text/plain; charset=utf-8"),
        ("text/plain;charset=utf-8", "text/plain; charset=utf-8"),
        ("", "application/json"),
        (None, "application/json"),
    ],
)
def test_answer_with_another_content_type_is_refused(media: str | None, wanted: str) -> None:
    assert refusal(answer(media=media), content_type=wanted) == (
        f"/index answered content-type '{media or '(none)'}', the contract says '{wanted}'"
    )


@pytest.mark.parametrize("length", [None, "", "35", "37", "036", "36, 36", "0x24"])
def test_a_length_that_is_missing_or_wrong(length: str | None) -> None:
    # An answer in chunks has none.
    chunks = answer(length=length).replace(b"Server: nginx", b"Transfer-Encoding: chunked")
    for given_answer in (answer(length=length), chunks):
        assert refusal(given_answer) == (
            f"/index answered content-length '{length or '(none)'}', the contract says '36'"
        )


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (b"", 0),
        (BODY[:-1], 35),  # cut off
        (BODY + b"\n", 36),
        (BODY.replace(b"world", b"World"), 10),
        # The same to whoever reads the JSON; not to whoever sends it.
        (b'{"ready":true,"hello":"world","n":1}', 2),
        (BODY.replace(b"1", b"1.0"), 35),
        (b" " + BODY, 0),
        (b"\xff\xfe\x1b" + BODY[3:], 0),
    ],
)
def test_other_bytes_are_told_with_their_place(body: bytes, first: int) -> None:
    assert refusal(answer(body, length="36")) == (
        f"/index answered {len(body)} bytes, the contract says 36; from byte {first} on "
        f"{body[first:]!r} instead of {BODY[first:]!r}"
    )


def test_of_many_other_bytes_the_first_are_told() -> None:
    assert refusal(answer(b"a" * 500 + b"c" * 500), text="a" * 500 + "b" * 500) == (
        "/index answered 1000 bytes, the contract says 1000; from byte 500 on "
        f"{b'c' * 80!r} instead of {b'b' * 80!r}"
    )


@pytest.mark.parametrize(
    ("times", "least", "most"),
    [
        ({}, 0, 1000),
        ({"minimum_ms": 50}, 50, 1050),
        ({"minimum_ms": 400, "maximum_ms": 3000}, 400, 3000),
        ({"maximum_ms": 4000}, 0, 4000),
    ],
)
def test_an_answer_takes_its_time_and_not_much_more(
    times: dict[str, int], least: int, most: int
) -> None:
    for fine in (least, (least + most) / 2, most):
        assert contract.check(replace(INDEX, **times), answer(), fine / 1000, {})
    for wrong in (least - 1, most + 1):
        assert refusal(answer(), wrong / 1000, **times) == (
            f"/index took {wrong:.1f} ms, the contract says {least} to {most} ms"
        )
    assert refusal(answer(), float("nan"), **times)


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",  # cut in its head
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 \r\n\r\n",
        b"HTTP/1.1 \xb200 OK\r\n\r\n",  # a superscript two is a digit to Python
        b"HTTP/1.1 OK 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\x00\xff" * 50 + b"\r\n\r\n",
    ],
)
def test_text_that_is_no_http_answer_is_refused(given: bytes) -> None:
    assert refusal(given) == f"not an HTTP answer: {given[:80]!r}"


def test_where_nobody_answers_curls_reason_is_told_with_the_remedy() -> None:
    why = "curl: (7) Failed to connect to 10.0.0.1 port 80 after 0 ms: Could not connect to server"
    told = refusal(f"{why}\n".encode())
    assert told.startswith(f"no answer: {why}. See that the stack runs on the server, and that no")


@given(st.binary(max_size=60), st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n"]))
def test_no_bytes_do_worse_than_a_refusal(tail: bytes, head: bytes) -> None:
    for given_bytes in (head + tail, head + tail + b"\r\n\r\n" + BODY, answer(tail)):
        told = refusal(given_bytes)
        # It is shown at a terminal and written to a file.
        assert told.encode()
        assert "\x1b" not in told.partition(", the contract says")[2]


MARK = "=== end of answer ==="


def test_answers_are_told_apart() -> None:
    bodies = {"a": answer(b'"\xff\xfe\xc3\xa9"'), "b": b"", "c": answer(b"\r\n\r\n")}
    times = {"a": "0.051834", "b": "0.000000", "c": "3"}
    mark = MARK.encode()
    text = b"".join(bodies[n] + mark + times[n].encode() + mark for n in bodies) + b"\n"
    # As Ansible has it: what is no UTF-8 comes back as the same bytes.
    found = contract.cut(text.decode("utf-8", "surrogateescape"), MARK, list(bodies))
    assert found == {name: (bodies[name], float(times[name])) for name in bodies}


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("", "0 came"),
        ("sh: 1: curl: not found", "0 came"),
        (f"x{MARK}", "0 came"),  # ended before its time
        (f"x{MARK}1{MARK}", "1 came"),
        (f"x{MARK}1{MARK}y{MARK}", "1 came"),
        (f"x{MARK}1{MARK}" * 3, "3 came"),
        # What follows the last is somebody else's.
        (f"x{MARK}1{MARK}" * 2 + "curl: (7) Failed", "2 came and something after them"),
    ],
)
def test_too_few_or_too_many_answers(text: str, came: str) -> None:
    with pytest.raises(ContractError) as problem:
        contract.cut(text, MARK, ["a", "b"])
    assert str(problem.value).startswith(f"asked for 2 answers, {came}")
    assert str(problem.value).endswith(f": {text!r}")


BODIES = {"json", "json_from", "text", "text_from", "html_from"}
NEEDS = {"database", "upstream", "book", "cpu_work"}


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_every_contract_has_the_form_that_its_file_tells(name: str) -> None:
    own = CONTRACTS[name]
    keys = set(WRITTEN[name])
    always = {"path", "method", "status", "content_type"}
    sometimes = {"headers", "body", "minimum_ms", "maximum_ms", "needs", "measured"}
    assert always <= keys <= always | sometimes | BODIES
    assert len(BODIES & keys) == 1
    if name.startswith("crud_"):
        assert own.path.startswith("/crud/items")
    else:
        assert own.path == f"/{name}"
    assert (own.method == "GET") == ("body" not in keys)
    # Compared without regard to case.
    assert own.content_type == WRITTEN[name]["content_type"].lower()
    assert set(own.needs) <= NEEDS
    if own.json_from or own.html_from:
        assert "database" in own.needs
    # Other bytes than these are not written alike in every language.
    assert own.html_from or contract.expected_body(own, DATASET).isascii()


def test_every_contract_asks_for_something_else() -> None:
    asked = [(own.method, own.path) for own in CONTRACTS.values()]
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_every_contract_can_be_met_and_missed(name: str) -> None:
    own = CONTRACTS[name]
    body = contract.expected_body(own, DATASET)
    status = f"{own.status} OK"
    right = answer(body, status, own.content_type)
    least = own.minimum_ms / 1000
    assert contract.check(own, right, least, DATASET).body_bytes == len(body) > 2
    for wrong, seconds in (
        (answer(b"{}", status, own.content_type), least),
        (answer(body, status, "text/css"), least),
        (right, least - 0.001),
        (right, 5),
    ):
        with pytest.raises(ContractError, match="the contract says"):
            contract.check(own, wrong, seconds, DATASET)


RECORDED = Contract(path="/mine")


def verified(*bodies: bytes, own: Contract = RECORDED, before: Any = None) -> contract.Answer:
    return contract.verified(own, [(answer(body), 2.0) for body in bodies], {}, before)


@pytest.mark.parametrize(
    ("bodies", "known"),
    [
        ([b"same", b"same"], ["sha256", "body_bytes", "wire_bytes"]),
        ([b"one!", b"two!"], ["body_bytes", "wire_bytes"]),
        ([b"one", b"three"], []),
    ],
)
def test_recorded_answer_has_what_two_answers_have_in_common(
    bodies: list[bytes], known: list[str]
) -> None:
    same = verified(*bodies)
    assert same.status == 200
    assert [key for key, value in asdict(same).items() if value is not None] == ["status", *known]


def test_answer_unlike_the_recorded_one_is_refused() -> None:
    first = verified(b"same", b"same")
    assert verified(b"same", b"same", before=first) == first
    with pytest.raises(ContractError, match="otherwise than the first time in this run: sha256"):
        verified(b"else", b"else", before=first)
    varied = verified(b"one!", b"two!")
    assert verified(b"six!", b"ten!", before=varied).body_bytes == 4
    with pytest.raises(ContractError, match="body_bytes was 4, and is 5"):
        verified(b"seven", b"eight", before=varied)


def test_recorded_answer_outside_of_goodput_is_refused() -> None:
    with pytest.raises(ContractError, match="status 404, and goodput counts 200 to 299 alone"):
        contract.check(RECORDED, answer(b"no", "404 Not Found"), 0.01, {})


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ({"pattern": "<h1>.*</h1>"}, b"<p><h1>Shop</h1>", b"<h1>"),
        ({"schema": {"type": "array", "minItems": 1}}, b"[1]", b"[]"),
        ({"schema": {"type": "object"}}, b"{}", b"{"),
        ({"schema": {}}, b"1", b"[" * 100_000),
    ],
)
def test_rule_leaves_the_body_free(rule: Any, right: bytes, wrong: bytes) -> None:
    own = replace(RECORDED, **rule)
    assert verified(right, own=own) == Answer(
        status=200, sha256=None, body_bytes=None, wire_bytes=None
    )
    with pytest.raises(ContractError) as refusal:
        verified(wrong, own=own)
    assert str(refusal.value).isprintable()


def test_header_of_an_answer_is_checked() -> None:
    own = replace(RECORDED, answer_headers={"Server": "NGINX"})
    verified(b"x", own=own)
    own = replace(RECORDED, answer_headers={"X-Made": "yes"})
    with pytest.raises(ContractError, match=r"x-made '\(none\)', the contract says 'yes'"):
        verified(b"x", own=own)


def test_answer_longer_than_is_read_is_refused() -> None:
    with pytest.raises(ContractError, match="at most 1048576"):
        contract.check(RECORDED, answer(b"x", length="2000000"), 0.01, {})
