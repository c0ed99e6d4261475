"""Action plugin lab.bench.begin_load: prepares the server, and begins one load on all clients.

Several clients get an agreed start, each by its own clock, as the shell variable BEGIN_AT, unix
seconds; a single client gets an empty one. The start is as far ahead as the hosts are distant,
which a command to each shows just before. Fails with the reasons of all that fail, and for a host
out of reach.
"""

import time
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import (
    Elsewhere,
    at_once,
    failing_for_lost_hosts,
)
from msgspec import Struct

from loadlab.generators.load import load_run
from loadlab.generators.load.load_run import Offer
from loadlab.telemetry import exporter


class Arguments(Struct, kw_only=True, frozen=True):
    """A load."""

    #: The clients, with the command that begins each and the URL of its exporter.
    offers: list[Offer]
    first: dict[str, str] = {}  #: Host -> shell command before the load.
    seconds: float  #: From the return of this action to the start of the measurement.


class ActionModule(ControllerAction[Arguments]):
    _requires_connection = True

    def work(self, args: Arguments) -> dict[str, object]:
        with failing_for_lost_hosts():
            self._begin(args)
        return {"changed": True}

    def _begin(self, args: Arguments) -> None:
        commands = {offer.name: offer.begin for offer in args.offers}
        hosts = {name: Elsewhere(self, name, self.variables) for name in (*args.first, *commands)}
        if args.first:
            at_once(hosts, args.first)
        if len(commands) == 1:
            at_once(hosts, {name: f"BEGIN_AT=; {text}" for name, text in commands.items()})
            return
        # Also connects where a connection ended meanwhile.
        said = at_once(hosts, dict.fromkeys(commands, "true"))
        with ThreadPoolExecutor(len(commands)) as pool:
            clocks = pool.map(exporter.clock_ahead_s, [offer.exporter for offer in args.offers])
            offsets = dict(zip(commands, clocks, strict=True))
        slowest_s = max(answer.took_s for answer in said.values())
        begin = time.time() + load_run.until_begin_s(args.seconds, slowest_s)
        timed = {
            name: f"BEGIN_AT={begin + offsets[name]:.6f}; {text}" for name, text in commands.items()
        }
        at_once(hosts, timed)
        # What follows is timed from here: the measurement begins after ``seconds``.
        time.sleep(max(begin - args.seconds - time.time(), 0.0))
