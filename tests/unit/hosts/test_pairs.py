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
    places: dict[str, pairs.Place] = dict.fromkeys((*servers, *clients), ("", 22, ""))
    assert pairs.refusal(servers, clients, ["", "two", "", "one"], places, {}) == ""


def test_one_address_behind_two_jump_hosts_is_two_machines() -> None:
    def refused(server: str, client: str, port: int = 22) -> str:
        places: dict[str, pairs.Place] = {"a": ("10.0.0.5", 22, server)}
        return pairs.refusal(["a"], ["b"], [""], {**places, "b": ("10.0.0.5", port, client)}, {})

    one, other = "-o ProxyJump=one.example.org", "-o ProxyJump=other.example.org"
    assert refused(one, other) == ""
    assert refused("", one) == ""
    assert refused(one, one, port=2222) == ""
    for way in ("", one):
        assert refused(way, way).startswith("has the hosts a and b at one address, 10.0.0.5. Two")
