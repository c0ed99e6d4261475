"""The database as synchronous applications use it, with the driver that LAB_DRIVER names.

LAB_DRIVER is psycopg2 or psycopg (3), LAB_DATABASE the connection string, LAB_POOL_SIZE the
connections of one worker's pool. No statement needs a transaction around it, so each connection
commits by itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any

import work

DRIVER = os.environ["LAB_DRIVER"]
DATABASE = os.environ["LAB_DATABASE"]

# With the drivers' own placeholder.
READ, CREATE, UPDATE = (
    re.sub(r"\$[0-9]+", "%s", statement) for statement in (work.READ, work.CREATE, work.UPDATE)
)

if DRIVER == "psycopg2":
    import psycopg2
    import psycopg2.extensions
    import psycopg2.pool

    # Django prefers psycopg 3 where both can be imported.
    sys.modules["psycopg"] = None  # type: ignore[assignment]

    class _Autocommit(psycopg2.extensions.connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.autocommit = True

    def _wait(connection: psycopg2.extensions.connection) -> None:
        """Let gevent run other requests until the database answers."""
        from gevent.socket import wait_read, wait_write

        while (state := connection.poll()) != psycopg2.extensions.POLL_OK:
            wait = wait_read if state == psycopg2.extensions.POLL_READ else wait_write
            wait(connection.fileno())

    # psycopg2 waits in C, which gevent's patches do not reach.
    if "gevent.monkey" in sys.modules and sys.modules["gevent.monkey"].is_module_patched("socket"):
        psycopg2.extensions.set_wait_callback(_wait)

    def _rows(
        connection: psycopg2.extensions.connection, statement: str, values: Sequence[Any] | None
    ) -> Sequence[Any]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()

    def query(statement: str, values: Sequence[Any] | None = None) -> Sequence[Any]:
        """Return the rows of a statement, over a new connection."""
        connection = psycopg2.connect(DATABASE, connection_factory=_Autocommit)
        with contextlib.closing(connection):
            return _rows(connection, statement, values)

    class Pool:
        """LAB_POOL_SIZE connections, all made at the start: none is made under load."""

        def __init__(self) -> None:
            size = int(os.environ["LAB_POOL_SIZE"])
            # psycopg2's own pool raises an error where it is empty, and does not wait.
            self._free = threading.BoundedSemaphore(size)
            self._pool = psycopg2.pool.ThreadedConnectionPool(
                size, size, DATABASE, connection_factory=_Autocommit
            )

        def query(self, statement: str, values: Sequence[Any] | None = None) -> Sequence[Any]:
            """Return the rows of a statement; waits for a free connection."""
            with self._free:
                connection = self._pool.getconn()
                try:
                    return _rows(connection, statement, values)
                finally:
                    self._pool.putconn(connection)

    def parameters() -> dict[str, Any]:
        """Return the parts of the connection string."""
        return dict(psycopg2.extensions.parse_dsn(DATABASE))

else:
    import atexit

    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    def query(statement: str, values: Sequence[Any] | None = None) -> Sequence[Any]:
        """Return the rows of a statement, over a new connection."""
        with psycopg.connect(DATABASE, autocommit=True) as connection:
            return connection.execute(statement, values).fetchall()

    class Pool:  # type: ignore[no-redef]
        """LAB_POOL_SIZE connections, all made at the start: none is made under load."""

        def __init__(self) -> None:
            from psycopg_pool import ConnectionPool

            size = int(os.environ["LAB_POOL_SIZE"])
            self._pool = ConnectionPool(
                DATABASE, min_size=size, max_size=size, kwargs={"autocommit": True}, open=True
            )
            atexit.register(self._pool.close)

        def query(self, statement: str, values: Sequence[Any] | None = None) -> Sequence[Any]:
            """Return the rows of a statement; waits for a free connection."""
            with self._pool.connection() as connection:
                return connection.execute(statement, values).fetchall()

    def parameters() -> dict[str, Any]:
        """Return the parts of the connection string."""
        return conninfo_to_dict(DATABASE)
