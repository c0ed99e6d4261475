"""Action plugin lab.bench.own_exporter: refuses an exporter that is another machine's."""

import http.client
from datetime import UTC, datetime

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.run import formatting
from loadlab.run.errors import LabError
from loadlab.telemetry import exporter, node_exporter


def moment(seconds: int) -> str:
    """Format unix seconds as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class Arguments(Struct, kw_only=True, frozen=True):
    """The exporter, and the host that it should be of."""

    url: str  #: Of the exporter's page, as the controller reaches it.
    booted: int  #: Boot time of the host from its /proc/stat, unix seconds.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        url = args.url
        try:
            booted = node_exporter.booted(exporter.fetch(url))
        except (OSError, ValueError, http.client.HTTPException) as problem:
            raise LabError(
                f"The telemetry of this host cannot be read at {url}: "
                f"{formatting.one_line(f'{type(problem).__name__}: {problem}')}. See that "
                "loadlab-exporter runs there; playbooks/deploy.yml puts it there. No load "
                "was offered."
            ) from None
        if booted != args.booted:
            raise LabError(
                f"The telemetry at {url} is another machine's: that was booted at "
                f"{moment(booted)}, and this host at {moment(args.booted)}. Let nothing else on "
                "this machine listen there (ss -ltnp says what does), and run the same command "
                "again. No load was offered."
            )
        return {}
