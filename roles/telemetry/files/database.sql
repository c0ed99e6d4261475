-- Connections of the database by state and wait, and its counters since the server's statistics were reset, as one JSON
-- row. psql's variable database names it. No semicolon, because the caller ends the statement.
SELECT jsonb_build_object(
    't', extract(epoch FROM clock_timestamp()),
    'pid', pg_backend_pid(),
    'connections', (SELECT count(*) FROM pg_stat_activity AS a
                    WHERE a.datid = d.datid AND a.backend_type = 'client backend'),
    -- The server's limit and that of the database, which -1 stands for none of. PostgreSQL 15 has no reserved_connections.
    'connections_limit', (SELECT least(nullif(datconnlimit, -1), current_setting('max_connections')::int
                                       - current_setting('superuser_reserved_connections')::int
                                       - coalesce(current_setting('reserved_connections', true)::int, 0))
                          FROM pg_database WHERE oid = d.datid),
    'activity', (SELECT coalesce(jsonb_agg(g), '[]')
                 FROM (SELECT coalesce(a.state, '') AS state, a.wait_event_type || ':' || a.wait_event AS wait,
                              count(*) AS number
                       FROM pg_stat_activity AS a
                       WHERE a.datid = d.datid AND a.backend_type = 'client backend' GROUP BY 1, 2) AS g),
    -- Processes of the sessions of each stack, where several are up together.
    'places', (SELECT coalesce(jsonb_object_agg(p.application_name, p.pids), '{}')
               FROM (SELECT a.application_name, jsonb_agg(a.pid) AS pids FROM pg_stat_activity AS a
                     WHERE a.datid = d.datid AND a.application_name LIKE 'loadlab-%' GROUP BY 1) AS p),
    'sessions', d.sessions,
    'transactions', d.xact_commit + d.xact_rollback,
    -- Not counted there any more from PostgreSQL 18 on.
    'wal_syncs', (SELECT to_jsonb(w) -> 'wal_sync' FROM pg_stat_wal AS w),
    'statements', (SELECT coalesce(jsonb_agg(s), '[]')
                   FROM (SELECT queryid::text AS id, min(query) AS query, sum(calls) AS calls,
                                sum(total_exec_time) AS total_ms
                         FROM pg_stat_statements WHERE dbid = d.datid GROUP BY queryid) AS s))
FROM pg_stat_database AS d WHERE d.datname = :'database'
