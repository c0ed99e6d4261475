from __future__ import annotations

from loadlab.hosts import pairs


def test_a_client_serves_the_server_that_it_names_or_that_of_its_place() -> None:
    servers, clients = ["one", "two"], ["a", "more-of-two", "b", "more-of-one"]
    found = pairs.of_inventory(servers, clients, ["", "two", "", "one"])
    assert [(pair.server, pair.client, pair.clients) for pair in found] == [
        ("one", "a", ["a", "more-of-one"]),
        ("two", "b", ["b", "more-of-two"]),
    ]
    assert found[1] == pairs.Pair(
        number=1,
        server="two",
        client="b",
        clients=["b", "more-of-two"],
        hosts=["two", "b", "more-of-two"],
        suffix="-two",
    )
    assert found[0].suffix == ""
    places = dict.fromkeys((*servers, *clients), ("", 22))
    assert pairs.refusal(servers, clients, ["", "two", "", "one"], places) == ""
