"""The reasons for what a plan lacks, which loadlab/plan returns: a curve, a tuning, a generator."""

from loadlab.reasons.row import ReasonRow, ReasonTable, names

CURVES: ReasonTable = {
    "curve_closed_loop": ReasonRow(
        "{generator} is a closed loop, and a curve is of constant rates",
        "Take a constant-rate generator (-e generator=)",
        meaning="The generator keeps no rate, and a curve is of rates.",
    ),
    "curve_duration": ReasonRow(
        "{generator} measures each rate for at least {value} s, and a curve for {limit:g} s",
        "Take another constant-rate generator (-e generator=)",
        meaning="The generator measures a rate for longer than the curve does.",
        thresholds=("curve_duration_s",),
    ),
    "curve_mix": ReasonRow(
        "its rates follow a closed loop, whose generator sends one kind of request",
        "Give several rates (-e rate=), or one endpoint",
        meaning="The load is a mix, a replay or a session, which has no closed loop beside it.",
    ),
    "curve_no_saturation": ReasonRow(
        "its rates are fractions of the closed loop, which has no valid measurement"
        "[ ({void:list})]",
        "Resume the run (-e run_id=)",
        meaning="The closed loop, whose goodput the rates follow, is void.",
    ),
    "curve_unmeasured": ReasonRow(
        "no measurement of it was made",
        "Resume the run (-e run_id=)",
        meaning="The run ended before the curve, or each measurement failed.",
    ),
}


# What the ledger says of a key that a tuning lacks without any effect.
_STATES = {"already": "already so without the lab"}


ABLATIONS: ReasonTable = {
    "key_changes_nothing": ReasonRow(
        lambda reason: ", ".join(_STATES.get(state, state) for state in names(reason, "states")),
        meaning="Leaving out this key changes nothing on the hosts, so the tuning was not "
        "measured.",
    )
}


LANES: ReasonTable = {
    "lanes_one_variant": ReasonRow(
        "there is one of them",
        meaning="There is only one variant to measure: a baseline is of another sitting.",
    ),
    "lanes_generator": ReasonRow(
        "only metronome alternates between them, and {generator} offers the load",
        "leave -e generator= and http2 out",
        meaning="A generator other than metronome offers the load.",
    ),
    "lanes_arrivals": ReasonRow(
        "turns need requests at equal intervals, and those of {arrivals} are not",
        "leave -e arrivals= out",
        meaning="Requests come at random, in bursts, along a ramp, or as a log or a session says, "
        "and lanes take turns.",
    ),
    "lanes_clients": ReasonRow(
        "{value} clients cannot alternate at the same moments",
        "one client",
        meaning="Several clients offer the load.",
    ),
    "lanes_load": ReasonRow(
        "they differ in {names:list}, and a load has one value of it",
        meaning="They differ in their load: keepalive, tls or headers.",
    ),
    "lanes_hosts": ReasonRow(
        "they differ in {option}, which applies to the whole machine",
        meaning="They differ in the tuning or the network of their hosts.",
    ),
    "lanes_no_application": ReasonRow(
        "{framework} has no application that could run twice",
        meaning="The reverse proxy answers by itself.",
    ),
    "lanes_own_database": ReasonRow(
        "{framework} has a database of its own, which two would change",
        meaning="The application has a database of its own.",
    ),
    "lanes_connections": ReasonRow(
        "max_connections of {tuning} admits the database connections of {value}, and a block "
        "has {limit}",
        "another tuning, or a smaller pool_size",
        meaning="PostgreSQL does not admit the connections of so many candidates.",
    ),
    "lanes_sessions": ReasonRow(
        "{framework} keeps no database sessions, so PostgreSQL's CPU time cannot be told apart",
        meaning="The application opens a database session for each request.",
    ),
}


_NAMED = "Name an executable with -e <generator>_binary="
GENERATORS: ReasonTable = {
    "generator_machine": ReasonRow(
        "it is {machine}, and the {generator} that it "
        "would get from this machine is for {made_for}",
        "Name one for the client's machine with -e <generator>_binary=",
        meaning="The executable is for another machine than the client's.",
    ),
    "generator_absent": ReasonRow(
        "the generator {generator} is not there, and no package of its distribution has it",
        f"{_NAMED}, install it on the client yourself, or take another with -e generator=",
        meaning="The client lacks the generator, and no package has it.",
    ),
}
